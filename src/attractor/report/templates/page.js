"use strict";
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const touch = matchMedia("(pointer: coarse)").matches;
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

  function draw(plot) {
    const { data, layout } = figures[plot.dataset.figure];
    if (touch) {
      /* A finger on a figure should scroll the page. */
      layout.dragmode = false;
      layout.xaxis.fixedrange = layout.yaxis.fixedrange = true;
    }
    Plotly.newPlot(plot, data, layout, config);
    Plotly.relayout(plot, look(plot));
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches;
  }

  function recolour() {
    const button = document.getElementById("theme");
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "Light" : "Dark";
    for (const plot of plots) Plotly.relayout(plot, look(plot));
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
      Plotly.relayout(plot, { hovermode: seeds ? "closest" : "x unified" });
    }
  }

  function sortBy(heading) {
    const row = heading.parentElement;
    const body = row.closest("table").tBodies[0];
    const column = [...row.cells].indexOf(heading);
    const down = heading.getAttribute("aria-sort") === "ascending";
    const sign = down ? -1 : 1;
    const key = (line) => {
      const cell = line.cells[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    const missing = (value) => value === "–" || value === "";
    const lines = [...body.rows].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      /* Nothing is neither small nor large: it stays at the end in both directions. */
      if (missing(left) || missing(right)) return missing(left) - missing(right);
      if (typeof left === "number" && typeof right === "number") return sign * (left - right);
      return sign * String(left).localeCompare(String(right), "en", { numeric: true });
    });
    body.append(...lines);
    for (const cell of row.cells) cell.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function filter(box) {
    const wanted = box.value.trim().toLowerCase();
    const table = box.closest("section").querySelector("table.results");
    for (const line of table.tBodies[0].rows) {
      const name = line.querySelector("th").textContent.toLowerCase();
      line.hidden = !name.includes(wanted);
    }
  }

  /* The cells of a table that are in sight, without those that are drawings alone. */
  function cells(table) {
    const drawn = [...table.tHead.rows[0].cells].map((cell) => cell.classList.contains("strip"));
    return [...table.rows]
      .filter((line) => !line.hidden)
      .map((line) => [...line.cells].filter((_, i) => !drawn[i]).map((cell) => cell.textContent.trim()));
  }

  function asCsv(rows) {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }

  function asLatex(rows) {
    const signs = { "±": "$\\pm$", "–": "--", "−": "$-$", "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
    const plain = (text) => text.replace(/[±–−\\~^&%$#_{}]/g, (sign) => signs[sign] ?? `\\${sign}`);
    const lines = rows.map((row) => `${row.map(plain).join(" & ")} \\\\`);
    const columns = rows[0].map(() => "l").join("");
    const body = [lines[0], "\\hline", ...lines.slice(1)].join("\n");
    return `\\begin{tabular}{${columns}}\n${body}\n\\end{tabular}\n`;
  }

  async function copy(button) {
    const table = button.parentElement.previousElementSibling.querySelector("table");
    const text = button.dataset.copy === "csv" ? asCsv(cells(table)) : asLatex(cells(table));
    const status = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      /* Older browsers, and pages that are served without encryption. */
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    status.textContent = "Copied.";
    setTimeout(() => { status.textContent = ""; }, 2000);
  }

  function scale(box, drawn) {
    for (const plot of drawn) {
      const means = plot.data.filter(({ meta }) => meta?.kind === "mean");
      const positive = means.every(({ y }) => [...y].every((value) => value === null || value > 0));
      const type = box.checked && positive ? "log" : "linear";
      const name = plot.layout.yaxis.title.text.replace(/ \(log scale\)$/, "");
      Plotly.relayout(plot, {
        "yaxis.type": type,
        "yaxis.autorange": true,
        "yaxis.title.text": type === "log" ? `${name} (log scale)` : name,
      });
    }
  }

  /* A page that is served asks for the version of the next one, and loads it when it is another. */
  async function watch() {
    try {
      const answer = await fetch("version", { cache: "no-store" });
      if (answer.ok && (await answer.text()) !== document.body.dataset.watch) location.reload();
    } catch {
      /* The server has ended: the page stays as it is. */
    }
  }

  for (const box of document.querySelectorAll("[data-filter]")) {
    box.addEventListener("input", () => filter(box));
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  if (document.body.dataset.watch) setInterval(watch, 3000);
  for (const button of document.querySelectorAll(".sort")) {
    button.addEventListener("click", () => sortBy(button.parentElement));
  }
  for (const section of document.querySelectorAll(".curves")) {
    const drawn = [...section.querySelectorAll(".plot")];
    const controls = section.querySelector(".keys");
    if (!controls) continue; /* a page about one network has none */
    const log = controls.querySelector("[data-log]");
    controls.addEventListener("change", ({ target }) =>
      target === log ? scale(log, drawn) : choose(controls, drawn));
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    recolour();
  });
  plots.forEach(draw);
  recolour();
  prefersDark.addEventListener("change", recolour);
  /* The first call sets the size, before the browser fits the page to the paper; the second
     the colours, once the styles for print are on. */
  addEventListener("beforeprint", () => plots.forEach(forPaper));
  printing.addEventListener("change", () => plots.forEach(printing.matches ? forPaper : forScreen));
})();
