"use strict";
/* One run in a window: its curves, which are on the page already, its configuration and its
   environment. */
const runWindow = (draw, figures) => {
  const opened = JSON.parse(document.getElementById("opened")?.textContent ?? "[]");
  const dialog = document.getElementById("run");

  function made(name, text, parent) {
    const element = document.createElement(name);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  function pairs(rows, parent) {
    const list = made("dl", "", parent);
    list.className = "pairs";
    for (const [name, value] of rows) {
      const line = made("div", "", list);
      made("dt", name, line);
      made("dd", value, line);
    }
  }

  function curvesOf(run, chapter, parent) {
    const grid = made("div", "", parent);
    grid.className = "figures";
    for (const plot of chapter.querySelectorAll(".curves .plot")) {
      const { data, layout } = figures[plot.dataset.figure];
      const own = data.find(({ meta }) => meta.variant === run.variant && meta.seed === run.seed);
      if (!own) continue;
      const figure = made("figure", "", grid);
      const title = plot.parentElement.querySelector("figcaption").textContent;
      made("figcaption", title, figure);
      const place = made("div", "", figure);
      place.className = "plot drawn";
      place.setAttribute("role", "img");
      place.setAttribute("aria-label", `${title} of ${run.label}, seed ${run.seed}`);
      const trace = { ...own, y: own.raw ?? own.y, visible: true, opacity: 1, line: { ...own.line, width: 2 } };
      const { annotations, shapes, ...rest } = layout;
      const axes = { xaxis: { ...layout.xaxis }, yaxis: { ...layout.yaxis, autorange: true } };
      draw(place, trace, { ...rest, ...axes, hovermode: "closest" });
    }
  }

  function show(number, index) {
    const { runs, environments } = opened[number - 1];
    const run = runs[index];
    const chapter = document.getElementById(`chapter-${number}`);
    dialog.textContent = "";
    const form = made("form", "", dialog);
    form.method = "dialog";
    made("button", "Close", form).className = "close";
    made("h2", `${run.label}, seed ${run.seed}`, dialog).id = "run-title";
    made("p", run.folder, dialog).className = "muted";
    if (run.reason) made("p", run.reason, dialog).className = "notice";
    pairs(run.measures, dialog);
    dialog.showModal();
    curvesOf(run, chapter, dialog);
    const text = chapter.querySelector(`[data-config="${run.variant}"] pre`).textContent;
    const configuration = made("details", "", dialog);
    made("summary", "Configuration", configuration);
    made("pre", text.replace(/^seed = \d+$/m, `seed = ${run.seed}`), configuration).tabIndex = 0;
    const environment = made("details", "", dialog);
    made("summary", "Environment", environment);
    pairs(environments[run.environment].map((line) => line.split(/: (.*)/s)), environment);
    history.replaceState(null, "", `#run-${number}-${index}`);
  }

  function fromAddress() {
    const found = /^#run-(\d+)-(\d+)$/.exec(location.hash);
    if (found && opened[found[1] - 1]?.runs[found[2]]) show(Number(found[1]), Number(found[2]));
  }

  for (const button of document.querySelectorAll(".open")) {
    button.addEventListener("click", () => {
      if (!("ready" in document.documentElement.dataset)) return; /* nothing can be drawn yet */
      show(Number(button.dataset.chapter), Number(button.dataset.run));
    });
  }
  dialog?.addEventListener("close", () => {
    for (const plot of dialog.querySelectorAll(".drawn")) Plotly.purge(plot);
    dialog.textContent = "";
    history.replaceState(null, "", location.pathname + location.search);
  });

  return { fromAddress };
};
