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

  for (const table of document.querySelectorAll("main table:has(tbody)")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, at) => {
      if (heading.classList.contains("bar")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = NEXT[heading.getAttribute("aria-sort")];
        for (const other of headings) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", next);
        const way = next === "descending" ? -1 : 1;
        // Equal values keep the order that they are shown in (sort is stable).
        const keyed = [...body.rows].map((row) => ({ row, key: key(row, at) }));
        if (next !== "none") keyed.sort((a, b) => compare(a.key, b.key, way));
        body.append(...(next === "none" ? original : keyed.map((entry) => entry.row)));
      });
    });
  }

  // One metric and one log at a time; an experiment without that metric shows its first.
  const metric = document.querySelector("#metric"), log = document.querySelector("#log");
  const groups = [...document.querySelectorAll(".boards")].map((group) => [...group.querySelectorAll(".board")]);
  const choose = () => {
    for (const boards of groups) {
      for (const [select, name] of [[metric, "metric"], [log, "log"]]) {
        const has = !select || boards.some((board) => board.dataset[name] === select.value);
        const wanted = has && select ? select.value : boards[0]?.dataset[name];
        for (const board of boards) board.classList.toggle(`other-${name}`, board.dataset[name] !== wanted);
      }
    }
  };
  for (const select of [metric, log]) select?.addEventListener("change", choose);
  choose();

  const filter = document.querySelector("#policies");
  const boxes = filter ? [...filter.querySelectorAll("input")] : [];
  const apply = () => {
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const row of document.querySelectorAll("tr[data-policy]")) row.hidden = hidden.has(row.dataset.policy);
    for (const table of document.querySelectorAll("table:has(th[data-policy])")) {
      [...table.tHead.rows[0].cells].forEach((heading, at) => {
        const off = hidden.has(heading.dataset.policy);
        for (const row of table.rows) row.cells[at].hidden = off;
      });
    }
    filter.querySelector("summary").textContent = `Policies: ${boxes.length - hidden.size} of ${boxes.length}`;
  };
  for (const box of boxes) box.addEventListener("change", apply);

  // What is wider than the page says so.
  for (const box of document.querySelectorAll(".box")) {
    const mark = () => box.classList.toggle("wide", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
    box.addEventListener("scroll", mark, { passive: true });
    new ResizeObserver(mark).observe(box);
  }

  const tip = document.querySelector(".tip");
  window.showTip = (text, left, top) => {
    tip.hidden = !text;
    tip.textContent = text;
    if (!text) return;
    tip.style.left = `${Math.max(4, Math.min(left + 12, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${top + 18 + tip.offsetHeight > innerHeight ? top - tip.offsetHeight - 8 : top + 18}px`;
  };
  document.addEventListener("pointermove", (event) => {
    const about = event.target.closest("[data-tip]");
    if (about) window.showTip(about.dataset.tip, event.clientX, event.clientY);
    else if (!(event.target instanceof HTMLCanvasElement)) tip.hidden = true;
  });

  for (const hint of document.querySelectorAll(".scripted")) hint.hidden = false;
  // What a link points at is unfolded.
  const reveal = () => {
    for (let node = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1))); node; node = node.parentElement)
      if (node instanceof HTMLDetailsElement) node.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
