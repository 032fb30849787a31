"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const { ranges, zoom, converted, byKey } = axes(figures);
  const plots = [...document.querySelectorAll(".plot")];
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const touch = matchMedia("(pointer: coarse)").matches;
  const AT_ONCE = 24; /* figures that are drawn before a reader comes near them */
  const config = {
    displaylogo: false,
    displayModeBar: touch ? false : "hover",
    responsive: true,
    showTips: false,
    plotlyServerURL: "",
    /* Named one by one: among plotly's own there is one that sends the figure away. */
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };

  /* Figures take their colours from the page, so that one style sheet rules both. */
  function look(plot) {
    const own = getComputedStyle(plot);
    const page = getComputedStyle(document.body);
    const look = {
      "font.color": own.color,
      "font.family": page.fontFamily,
      "font.size": 13,
      "hoverlabel.bgcolor": page.backgroundColor,
      "hoverlabel.bordercolor": own.borderTopColor,
      "hoverlabel.font.color": page.color,
      "modebar.bgcolor": "rgba(0,0,0,0)",
      "modebar.color": own.color,
      "modebar.activecolor": page.color,
    };
    for (const axis of ["xaxis", "yaxis"]) look[`${axis}.gridcolor`] = own.borderTopColor;
    return look;
  }

  /* The library is packed, which makes the page half as large; browsers of 2023 on unpack it. */
  async function unpack() {
    const text = document.getElementById("plotting").textContent;
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  /* Those of some figures that are not drawn yet. */
  const undrawn = (some) => some.filter((plot) => !plot.classList.contains("drawn"));

  function draw(plot) {
    const { data, layout } = figures[plot.dataset.figure];
    plot.classList.add("drawn");
    /* A copy, for the library writes into it, and what was drawn first is asked for later. */
    Plotly.newPlot(plot, data, structuredClone(layout), config);
    Plotly.relayout(plot, look(plot));
    if (touch) zoomable(plot);
  }

  /* A finger on a figure scrolls the page, until its button is pressed. */
  function zoomable(plot) {
    const turns = "scene" in plot.layout;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "zoom";
    button.textContent = turns ? "Turn" : "Zoom";
    plot.parentElement.prepend(button);
    function use(on) {
      button.setAttribute("aria-pressed", String(on));
      if (turns) {
        Plotly.relayout(plot, { "scene.dragmode": on ? "turntable" : false });
        return;
      }
      const whole = on ? {} : ranges(plot);
      const fixed = { "xaxis.fixedrange": !on, "yaxis.fixedrange": !on };
      Plotly.relayout(plot, { dragmode: on ? "zoom" : false, ...fixed, ...whole });
    }
    button.addEventListener("click", () => use(button.getAttribute("aria-pressed") !== "true"));
    use(false);
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  }

  function recolour() {
    const button = document.getElementById("theme");
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "Light" : "Dark";
    for (const plot of document.querySelectorAll(".drawn")) Plotly.relayout(plot, look(plot));
  }

  /* Paper has a width of its own, which scripts cannot ask for: A4 between its margins. */
  function forPaper(plot) {
    const wide = plot.parentElement.classList.contains("wide");
    Plotly.relayout(plot, { ...look(plot), width: wide ? 686 : 334, height: wide ? 290 : 240 });
  }

  function forScreen(plot) {
    Plotly.relayout(plot, { ...look(plot), width: null, height: null, autosize: true });
  }

  function choose(controls, drawn) {
    const wanted = new Set();
    for (const box of controls.querySelectorAll("[data-variant]:checked")) {
      wanted.add(Number(box.dataset.variant));
    }
    const seeds = controls.querySelector("[data-kind=seed]").checked;
    const bands = controls.querySelector("[data-kind=band]").checked;
    const shown = { mean: true, seed: seeds, band: bands };
    for (const plot of drawn) {
      const visible = plot.data.map(({ meta }) => wanted.has(meta.variant) && shown[meta.kind]);
      Plotly.restyle(plot, { visible });
      const single = seeds || plot.data[0].meta.by === "seed";
      Plotly.relayout(plot, { hovermode: single ? "closest" : "x unified" });
    }
  }

  /* An exponential moving average that begins without a bias towards its first value. */
  function averaged(values, weight) {
    let sum = 0;
    let total = 0;
    return [...values].map((value) => {
      if (value === null) return null;
      sum = weight * sum + (1 - weight) * value;
      total = weight * total + (1 - weight);
      return sum / total;
    });
  }

  function smooth(slider, drawn) {
    for (const plot of drawn) {
      const traces = figures[plot.dataset.figure].data;
      traces.forEach((trace, index) => {
        if (trace.meta?.kind === "band" || trace.meta?.by) return;
        trace.raw ??= [...trace.y];
        Plotly.restyle(plot, { y: [averaged(trace.raw, Number(slider.value))] }, [index]);
      });
    }
  }

  /* Each figure on the scale that is asked for, if it has it; zooms stay. */
  function scale(wanted, drawn) {
    for (const plot of drawn) {
      const { meta, xaxis } = figures[plot.dataset.figure].layout;
      if (!meta) continue;
      const asked = wanted || meta.drawn;
      const type = meta.scales[asked] ? asked : "linear";
      const now = plot.layout.yaxis;
      if (now.type === type) continue;
      const zoomed = zoom(plot);
      if (zoomed["yaxis.range"]) {
        zoomed["yaxis.range"] = converted(now.range, type, meta.scales[type].range);
      }
      const own = structuredClone(meta.scales[type]);
      const text = type === "log" ? `${meta.name} (log scale)` : meta.name;
      const bare = { ...now, tickformat: undefined, nticks: undefined };
      const layout = {
        ...plot.layout,
        xaxis: { ...plot.layout.xaxis, range: [...xaxis.range] },
        yaxis: { ...bare, ...own, title: { ...now.title, text } },
      };
      /* Drawn anew, or "Reset axes" would bring back the range of the other type. */
      Plotly.newPlot(plot, plot.data, layout, config);
      Plotly.relayout(plot, { ...look(plot), ...zoomed });
    }
  }

  function plotName(plot) {
    const section = plot.closest("section").querySelector(".heading").id.replace(/\d+/, "");
    return reader.named(plot, section, plot.parentElement.querySelector("figcaption").textContent);
  }

  /* While a reader writes, drags or looks at a run, the page stays. */
  function busy() {
    return document.activeElement?.matches("input[type=search]")
      || document.querySelector("dialog[open], input:active, .plot:active") !== null;
  }

  /* A page that is served asks for the version of the next one, and loads it when it is another. */
  async function watch() {
    try {
      const answer = await fetch("version", { cache: "no-store" });
      if (!answer.ok || (await answer.text()) === document.body.dataset.watch || busy()) return;
      const drawn = [...document.querySelectorAll("main .drawn")];
      reader.keep(Object.fromEntries(drawn.map((plot) => [plotName(plot), zoom(plot)])));
      location.reload();
    } catch {
      /* The server has ended: the page stays as it is. */
    }
  }

  function zoomAgain(zooms) {
    for (const plot of plots) {
      const range = zooms[plotName(plot)];
      if (!range || !Object.keys(range).length) continue;
      undrawn([plot]).forEach(draw);
      Plotly.relayout(plot, range);
    }
  }

  const opened = runWindow((place, trace, layout) => {
    Plotly.newPlot(place, [trace], layout, config);
    Plotly.relayout(place, look(place));
  }, figures);

  /* The contents tell where the reader is. */
  const links = new Map(
    [...document.querySelectorAll(".toc ol ol a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...links.keys()].map((id) => document.getElementById(id));

  function here() {
    const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
    const current = (passed.at(-1) ?? headings[0])?.id;
    for (const [id, link] of links) {
      if (id === current) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
    return headings.findIndex((heading) => heading.id === current);
  }

  function go(steps) {
    const top = headings[0]?.getBoundingClientRect().top > 120 && steps > 0 ? 0 : here() + steps;
    const heading = headings[Math.min(Math.max(top, 0), headings.length - 1)];
    heading?.scrollIntoView();
    heading?.querySelector("a")?.focus({ preventScroll: true });
  }

  /* The controls of the chapter that is in sight. */
  function near(selector) {
    const chapters = [...document.querySelectorAll(".chapter")];
    const seen = chapters.filter((one) => one.getBoundingClientRect().top < innerHeight / 2);
    return (seen.at(-1) ?? chapters[0])?.querySelector(selector);
  }

  function next(select) {
    if (!select) return;
    select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  }

  const pressed = {
    n: () => go(1),
    p: () => go(-1),
    d: () => document.getElementById("theme").click(),
    l: () => next(near("[data-scale]")),
    s: () => near("[data-kind=seed]")?.click(),
    i: () => near("[data-kind=band]")?.click(),
    "/": () => near("[data-filter]")?.focus(),
    "?": () => document.getElementById("help")?.showModal(),
  };

  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input:not([type=checkbox]):not([type=range]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const plot = event.target.closest?.(".drawn");
    const change = plot && byKey(plot, event.key);
    if (change) {
      event.preventDefault();
      Plotly.relayout(plot, change);
      return;
    }
    if (document.querySelector("dialog[open]") || !(event.key in pressed)) return;
    event.preventDefault();
    pressed[event.key]();
  });
  document.getElementById("keys")?.addEventListener("click", pressed["?"]);
  if (links.size) {
    const contents = document.querySelector(".toc details");
    const wide = matchMedia("(min-width: 1100px)");
    const fold = () => { contents.open = wide.matches; };
    fold();
    wide.addEventListener("change", fold);
    contents.addEventListener("click", ({ target }) => { if (target.matches("a")) fold(); });
    addEventListener("scroll", here, { passive: true });
    here();
  }
  if (document.body.dataset.watch) setInterval(watch, 3000);
  for (const section of document.querySelectorAll(".curves")) {
    const drawn = [...section.querySelectorAll(".plot")];
    const controls = section.querySelector(".keys");
    if (!controls) continue; /* a page about one network has none */
    const scales = controls.querySelector("[data-scale]");
    const slider = controls.querySelector("[data-smooth]");
    slider.addEventListener("input", () => smooth(slider, drawn));
    /* What a reader sets is set in each figure of the section, so each is there. */
    const ready = () => undrawn(drawn).forEach(draw);
    for (const kind of ["input", "change", "click"]) controls.addEventListener(kind, ready, true);
    controls.addEventListener("change", ({ target }) => {
      if (target === scales) scale(scales.value, drawn);
      else if (target !== slider) choose(controls, drawn);
    });
    for (const button of controls.querySelectorAll("[data-every]")) {
      button.addEventListener("click", () => {
        const checked = button.dataset.every === "all";
        for (const box of controls.querySelectorAll("[data-variant]")) box.checked = checked;
        choose(controls, drawn);
      });
    }
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    reader.keepTheme();
    recolour();
  });
  async function begin() {
    await unpack();
    for (const controls of document.querySelectorAll(".keys")) controls.disabled = false;
    /* Maps and courses in space, which take long, and what is far down wait until they are near. */
    const later = plots.filter((plot, place) => place >= AT_ONCE || plot.closest(".inside"));
    const nearby = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        nearby.unobserve(target);
        undrawn([target]).forEach(draw);
      }
    }, { rootMargin: "200px" });
    plots.filter((plot) => !later.includes(plot)).forEach(draw);
    later.forEach((plot) => nearby.observe(plot));
    recolour();
    prefersDark.addEventListener("change", recolour);
    /* The first call sets the size, before the browser fits the page to the paper; the second
       the colours, once the styles for print are on. */
    addEventListener("beforeprint", () => {
      undrawn(plots).forEach(draw);
      plots.forEach(forPaper);
    });
    printing.addEventListener("change", () =>
      plots.filter((plot) => plot.classList.contains("drawn"))
        .forEach(printing.matches ? forPaper : forScreen));
    if (document.body.dataset.watch) zoomAgain(reader.restore());
    opened.fromAddress();
    root.dataset.ready = "";
  }
  begin();
})();
