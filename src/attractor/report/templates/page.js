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

  for (const button of document.querySelectorAll(".sort")) {
    button.addEventListener("click", () => sortBy(button.parentElement));
  }
  for (const section of document.querySelectorAll(".curves")) {
    const drawn = [...section.querySelectorAll(".plot")];
    const controls = section.querySelector(".keys");
    controls.addEventListener("change", () => choose(controls, drawn));
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
