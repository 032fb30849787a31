"use strict";
/* Tables: sorted, filtered, copied and saved. */
(() => {
  const LONG = 6; /* rows that are taken in at a glance */

  function sorted(table) {
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.classList.contains("strip")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sortBy(heading));
    }
  }

  function filtered(table) {
    if (table.tBodies[0].rows.length <= LONG) return;
    const line = document.createElement("p");
    line.className = "filter";
    line.innerHTML = `<label>Show rows with <input type="search" data-filter
      placeholder="text in any column"></label> <span role="status"></span>`;
    table.closest(".scroll").before(line);
    line.querySelector("input").addEventListener("input", ({ target }) =>
      filter(table, target.value, line.querySelector("span")));
  }

  /* Columns that are out of sight are easily missed where scroll bars hide. */
  function announced(table) {
    const frame = table.closest(".scroll");
    const line = document.createElement("p");
    line.className = "more";
    line.textContent = "This table is wider than the page: scroll it sideways to see all columns.";
    frame.before(line);
    new ResizeObserver(() => { line.hidden = frame.scrollWidth <= frame.clientWidth + 1; })
      .observe(frame);
  }

  function sortBy(heading) {
    const row = heading.parentElement;
    const body = row.closest("table").tBodies[0];
    const column = [...row.cells].indexOf(heading);
    const down = heading.getAttribute("aria-sort") === "ascending";
    const sign = down ? -1 : 1;
    const key = (line) => {
      const cell = line.cells[column];
      const text = cell.textContent.trim();
      const number = Number(cell.dataset.value ?? text.replaceAll(",", ""));
      return text === "" || Number.isNaN(number) ? text : number;
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

  function filter(table, text, status) {
    const wanted = text.trim().toLowerCase();
    const lines = [...table.tBodies[0].rows];
    for (const line of lines) line.hidden = !line.textContent.toLowerCase().includes(wanted);
    const shown = lines.filter((line) => !line.hidden).length;
    status.textContent = wanted ? `${shown} of ${lines.length} rows` : "";
  }

  /* The cells of a table that are in sight, without those that are drawings alone. */
  function cells(table) {
    const drawn = [...table.tHead.rows[0].cells].map((cell) => cell.classList.contains("strip"));
    return [...table.rows]
      .filter((line) => !line.hidden)
      .map((line) => [...line.cells].filter((_, i) => !drawn[i]));
  }

  const written = (cell) => cell.textContent.trim();

  function asCsv(table) {
    const rows = cells(table).map((row) => row.map(written));
    /* A name that a spreadsheet would compute stays text; numbers may have signs. */
    const inert = (text) => (/^([=@]|[+-](?![\d.]))/.test(text) ? `'${text}` : text);
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return rows.map((row) => row.map((text) => quoted(inert(text))).join(",")).join("\n") + "\n";
  }

  /* Numbers stand to the right; what is bold on the page is bold. */
  function asLatex(table) {
    const signs = { "±": "$\\pm$", "–": "--", "−": "$-$", "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
    const plain = (text) => text.replace(/[±–−\\~^&%$#_{}]/g, (sign) => signs[sign] ?? `\\${sign}`);
    const rows = cells(table);
    const told = rows.map((row) => row.map((cell) => {
      const text = plain(written(cell));
      return cell.querySelector("strong") ? `\\textbf{${text}}` : text;
    }));
    const lines = told.map((row) => `${row.join(" & ")} \\\\`);
    const numeric = (place) => rows.slice(1).every((row) => /^[-+−–±.,%\s\d]*$/.test(written(row[place])));
    const columns = rows[0].map((cell, place) =>
      (cell.classList.contains("number") || numeric(place) ? "r" : "l")).join("");
    const body = [lines[0], "\\hline", ...lines.slice(1)].join("\n");
    return `\\begin{tabular}{${columns}}\n${body}\n\\end{tabular}\n`;
  }

  function table(button) {
    return button.parentElement.previousElementSibling.querySelector("table");
  }

  async function copy(button) {
    const text = (button.dataset.copy === "csv" ? asCsv : asLatex)(table(button));
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

  function save(button) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([asCsv(table(button))], { type: "text/csv" }));
    link.download = `${button.dataset.save}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  for (const table of document.querySelectorAll("main table")) {
    sorted(table);
    filtered(table);
    announced(table);
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button));
  }
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => save(button));
  }
})();
