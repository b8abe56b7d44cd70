"use strict";
(() => {
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // Numbers before words before nothing, whichever way a column is sorted.
  const key = (row, at) => {
    const cell = row.cells[at];
    if (cell.dataset.v !== undefined) return { kind: 0, value: Number(cell.dataset.v) };
    const text = cell.textContent.trim();
    return { kind: text ? 1 : 2, value: text };
  };
  const compare = (a, b, way) => {
    if (a.kind !== b.kind) return a.kind - b.kind;
    if (a.kind === 0) return way * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
    return way * words.compare(a.value, b.value);
  };
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  for (const table of document.querySelectorAll("main table")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = NEXT[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", next);
        const way = next === "descending" ? -1 : 1;
        // Equal values keep the order that they are shown in (sort is stable).
        const keyed = [...body.rows].map((row) => ({ row, key: key(row, at) }));
        if (next !== "none") keyed.sort((a, b) => compare(a.key, b.key, way));
        body.append(...(next === "none" ? original : keyed.map((entry) => entry.row)));
      });
    });
  }

  // What is wider than the page says so.
  for (const box of document.querySelectorAll(".box")) {
    const mark = () => box.classList.toggle("wide", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
    box.addEventListener("scroll", mark, { passive: true });
    new ResizeObserver(mark).observe(box);
  }

  for (const hint of document.querySelectorAll(".scripted")) hint.hidden = false;
  // On a phone the contents would fill the first screen.
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector("nav > details").open = false;
})();
