"use strict";
const SHOWN = 10; // rows of a table before "show all"

function element(name, text, attributes = {}) {
  const svg = ["svg", "line", "polyline", "circle", "text", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  if (text !== undefined) node.textContent = text; // never innerHTML: entries are untrusted text
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function leaderboards() {
  const filter = document.getElementById("filter"), found = document.getElementById("found");
  const tables = [...document.querySelectorAll("article")].map(article => {
    const body = article.querySelector("tbody");
    const more = element("button", "", { type: "button", class: "more" });
    article.append(more);
    const table = { article, body, more, all: false, rows: [...body.rows] };
    more.addEventListener("click", () => { table.all = !table.all; show(table); });
    [...article.querySelectorAll("thead th")].forEach((head, column) => sortable(table, head, column));
    return table;
  });

  function show(table) {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let matching = 0;
    for (const row of table.rows) {
      row.text ??= row.textContent.toLowerCase();
      const matches = words.every(word => row.text.includes(word));
      if (matches) matching += 1;
      row.hidden = !matches || (!table.all && matching > SHOWN && !row.classList.contains("mine"));
    }
    table.more.hidden = matching <= SHOWN;
    table.more.textContent = table.all ? `Show ${SHOWN}` : `Show all ${matching}`;
    table.article.hidden = matching === 0;
    return matching;
  }

  function showAll() {
    const total = tables.map(show).reduce((sum, count) => sum + count, 0);
    for (const section of document.querySelectorAll("section")) {
      section.hidden = !section.querySelector("article:not([hidden])");
    }
    found.textContent = filter.value ? `${total} ${total === 1 ? "row matches" : "rows match"}` : "";
  }

  function sortable(table, head, column) {
    const button = element("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const number = head.dataset.sort === "number";
      table.rows.sort((a, b) => {
        const order = number ? value(a) - value(b) : value(a).localeCompare(value(b));
        return up ? order : -order;
      });
      table.body.append(...table.rows);
      show(table);
    });
  }

  filter.addEventListener("input", () => {
    history.replaceState(null, "", filter.value ? "#q=" + encodeURIComponent(filter.value) : "#");
    showAll();
  });
  filter.value = new URLSearchParams(location.hash.slice(1)).get("q") ?? "";
  showAll();
}

// Draws the scores of one or two entries over their time of training; two on a logarithmic axis.
function chart(entries) {
  const { metric, threshold } = entries[0], two = entries.length > 1;
  const points = entries.flatMap(entry => entry.curve).filter(point => point[0] > 0);
  const scale = two ? Math.log10 : hours => hours;
  const times = points.map(point => scale(point[0])), values = points.map(point => point[1]);
  const x0 = two ? Math.min(...times) : 0, x1 = Math.max(...times);
  const y0 = Math.min(...values, threshold), y1 = Math.max(...values, threshold);
  const x = hours => (70 + 390 * (scale(hours) - x0) / (x1 - x0 || 1)).toFixed(1);
  const y = value => (220 - 195 * (value - y0) / (y1 - y0 || 1)).toFixed(1);
  const svg = element("svg", undefined, { viewBox: "0 0 480 260", role: "img", class: "chart" });
  svg.append(element("title", `${metric} over the time of training: ${entries.map(entry => entry.model).join(" and ")}`));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const steps = units.flatMap(([unit]) => [100, 50, 30, 20, 10, 5, 2, 1].map(n => n * unit)).reverse();
  let ticks = steps.filter((step, i) => step > (steps[i - 1] ?? 0) && scale(step / 3600) >= x0 && scale(step / 3600) <= x1);
  if (two) ticks = ticks.filter((_, i) => i % Math.ceil(ticks.length / 5) === 0);
  const step = steps.find(step => 3600 * x1 / step <= 6) ?? 3600 * x1;
  if (!two) ticks = Array.from({ length: Math.floor(3600 * x1 / step) }, (_, i) => (i + 1) * step);
  for (const tick of ticks) {
    const [unit, name] = units.find(([unit]) => tick >= unit) ?? [1, "s"];
    svg.append(element("text", `${+(tick / unit).toPrecision(3)} ${name}`, { x: x(tick / 3600), y: 238, "text-anchor": "middle" }));
  }
  const levels = [y0, y1].filter(value => Math.abs(y(value) - y(threshold)) > 14);
  for (const value of [threshold, ...levels]) {
    const style = value === threshold ? "threshold" : "grid";
    svg.append(element("line", undefined, { class: style, x1: 70, x2: 460, y1: y(value), y2: y(value) }));
    svg.append(element("text", String(+value.toPrecision(4)), { x: 64, y: Number(y(value)) + 4, "text-anchor": "end" }));
  }
  svg.append(element("text", `time of training${two ? " (logarithmic)" : ""}`, { x: 265, y: 256, "text-anchor": "middle" }));
  svg.append(element("text", metric, { x: 70, y: 13 }));
  entries.forEach((entry, i) => {
    const line = entry.curve.filter(point => point[0] > 0).map(point => `${x(point[0])},${y(point[1])}`);
    svg.append(element("polyline", undefined, { class: i ? "second" : "line", points: line.join(" ") }));
    if (entry.hit && entry.hit[0] > 0) svg.append(element("circle", undefined, { class: "hit", cx: x(entry.hit[0]), cy: y(entry.hit[1]), r: 4.5 }));
  });
  return svg;
}

function comparison() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const sides = ["a", "b"].map(name => document.getElementById(name));
  const panel = document.getElementById("comparison");
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const side of sides) {
    side.value = Object.hasOwn(data, asked.get(side.id) ?? "") ? asked.get(side.id) : "";
    side.addEventListener("change", show);
  }

  function show() {
    const chosen = sides.filter(side => side.value);
    history.replaceState(null, "", "#" + chosen.map(side => `${side.id}=${side.value}`).join("&"));
    if (chosen.length < 2) return panel.replaceChildren();
    const [a, b] = sides.map(side => data[side.value]);
    panel.replaceChildren(facts(a, b));
    if (a.curve.length && b.curve.length && a.dataset === b.dataset) panel.append(chart([a, b]));
  }

  function facts(a, b) {
    const table = element("table"), head = table.createTHead().insertRow(), body = table.createTBody();
    head.append(element("td"));
    const heads = [["First", "key one"], ["Second", "key two"]];
    for (const [text, style] of heads) head.append(element("th", text, { scope: "col", class: style }));
    const names = ["model", "dataset", "phase", "hardware", "framework", "author", "date"];
    const rows = names.map(name => [name, a[name], b[name]]);
    const figures = new Set([...Object.keys(a.figures), ...Object.keys(b.figures)]);
    for (const name of figures) rows.push([name, a.figures[name] ?? "", b.figures[name] ?? ""]);
    for (const [name, ...values] of rows) {
      const row = body.insertRow();
      row.append(element("th", name, { scope: "row" }), ...values.map(value => element("td", value)));
    }
    return table;
  }

  show();
}

if (document.getElementById("filter")) leaderboards();
if (document.getElementById("comparison")) comparison();
const curve = document.getElementById("curve");
if (curve) curve.prepend(chart([JSON.parse(document.getElementById("data").textContent)]));
