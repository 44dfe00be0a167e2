"use strict";
const SHOWN = 10; // rows of a table before "show all"

function element(name, text, attributes = {}) {
  const svg = ["svg", "line", "polyline", "text", "title"].includes(name);
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
    found.textContent = filter.value ? `${total} rows match` : "";
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
    if (a.curve.length && b.curve.length && a.dataset === b.dataset) panel.append(chart(a, b));
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

  function chart(a, b) {
    const points = [...a.curve, ...b.curve], values = points.map(point => point[1]);
    const positive = points.map(point => point[0]).filter(hours => hours > 0);
    const x0 = Math.log10(Math.min(...positive)), x1 = Math.log10(Math.max(...positive));
    const y0 = Math.min(...values), y1 = Math.max(...values, a.threshold);
    const x = hours => (60 + 400 * (Math.log10(hours) - x0) / (x1 - x0 || 1)).toFixed(1);
    const y = value => (220 - 200 * (value - y0) / (y1 - y0 || 1)).toFixed(1);
    const svg = element("svg", undefined, { viewBox: "0 0 480 260", role: "img", class: "chart" });
    svg.append(element("title", `Accuracy over hours of training, on a logarithmic axis: ${a.model} and ${b.model}`));
    for (let power = Math.ceil(x0); power <= Math.floor(x1); power += 1) {
      svg.append(element("text", `${10 ** power} h`, { x: x(10 ** power), y: 240, "text-anchor": "middle" }));
    }
    for (const value of [y0, a.threshold]) {
      svg.append(element("line", undefined, { class: "threshold", x1: 60, x2: 460, y1: y(value), y2: y(value) }));
      svg.append(element("text", String(Math.round(value * 100) / 100), { x: 54, y: Number(y(value)) + 4, "text-anchor": "end" }));
    }
    svg.append(element("text", "hours of training (logarithmic)", { x: 260, y: 256, "text-anchor": "middle" }));
    [[a, "line"], [b, "second"]].forEach(([entry, style]) => {
      const line = entry.curve.filter(point => point[0] > 0).map(point => `${x(point[0])},${y(point[1])}`);
      svg.append(element("polyline", undefined, { class: style, points: line.join(" ") }));
    });
    return svg;
  }

  show();
}

if (document.getElementById("filter")) leaderboards();
if (document.getElementById("comparison")) comparison();
