"use strict";
/* What a reader has chosen: the theme on every page, the rest until a served page is loaded anew. */
const reader = (() => {
  const root = document.documentElement;

  /* Browsers may refuse to keep anything, as they do in private windows. */
  function stored(storage, name) {
    try { return storage().getItem(name); } catch { return null; }
  }

  function store(storage, name, value) {
    try { storage().setItem(name, value); } catch { /* then it is not kept */ }
  }

  const forGood = () => localStorage;
  const forNow = () => sessionStorage;

  function keepTheme() {
    store(forGood, "attractor-theme", root.dataset.theme);
  }

  const theme = stored(forGood, "attractor-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  /* Names that hold on the next page, where the numbers of chapters and variants may be others. */
  function named(element, ...more) {
    return [element.closest("[data-key]")?.dataset.key, ...more].join("\n");
  }

  function tableName(table) {
    const copies = table.closest(".scroll").nextElementSibling;
    return named(table, copies?.querySelector("[data-save]")?.dataset.save);
  }

  function controls() {
    const found = new Map();
    for (const one of document.querySelectorAll(".keys input, .keys select")) {
      const kind = Object.keys(one.dataset).join();
      found.set(named(one, kind, one.closest("label").textContent.trim()), one);
    }
    for (const line of document.querySelectorAll("p.filter")) {
      let frame = line;
      while (!frame.matches(".scroll")) frame = frame.nextElementSibling;
      found.set(`${tableName(frame.querySelector("table"))}\nfilter`, line.querySelector("input"));
    }
    for (const one of document.querySelectorAll("main details")) {
      found.set(named(one, "details", one.querySelector("summary").textContent.trim()), one);
    }
    return found;
  }

  /* The property of a control that a reader changes, and what it was at first. */
  function setting(one) {
    if (one.matches("details")) return ["open", false];
    if (one.type === "checkbox") return ["checked", one.defaultChecked];
    return ["value", one.matches("select") ? one.options[0].value : one.defaultValue];
  }

  function keep(zooms) {
    const state = { settings: {}, sorted: {}, zooms, top: scrollY };
    for (const [name, one] of controls()) {
      const [property, first] = setting(one);
      if (one[property] !== first) state.settings[name] = one[property];
    }
    for (const heading of document.querySelectorAll("main th[aria-sort]")) {
      const order = [heading.textContent.trim(), heading.getAttribute("aria-sort")];
      state.sorted[tableName(heading.closest("table"))] = order;
    }
    store(forNow, "attractor-state", JSON.stringify(state));
  }

  function sort(table, [text, order]) {
    const heading = [...table.tHead.rows[0].cells].find((one) => one.textContent.trim() === text);
    for (let clicks = 0; heading && clicks < 2; clicks += 1) {
      if (heading.getAttribute("aria-sort") !== order) heading.querySelector("button")?.click();
    }
  }

  /* Puts everything back but the zooms, which it gives to whoever draws. */
  function restore() {
    const state = JSON.parse(stored(forNow, "attractor-state") ?? "null");
    store(forNow, "attractor-state", "null");
    if (!state) return {};
    for (const [name, one] of controls()) {
      if (!(name in state.settings)) continue;
      one[setting(one)[0]] = state.settings[name];
      for (const kind of ["input", "change"]) one.dispatchEvent(new Event(kind, { bubbles: true }));
    }
    for (const table of document.querySelectorAll("main table")) {
      const order = state.sorted[tableName(table)];
      if (order) sort(table, order);
    }
    scrollTo(0, state.top);
    return state.zooms;
  }

  return { keep, keepTheme, named, restore };
})();
