// What all pages share: numbers for people, elements, charts and tables. A page's own script follows. `data` is the
// document in #data.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SIDES = ["device", "cloud"];

// ---- numbers ----
const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 1000 ? v.toFixed(0) : String(Number(v.toPrecision(3))));
function scaled(v, units) {
  if (v === null || !isFinite(v)) return "\u2013";
  const unit = units.find(([least]) => Math.abs(v) >= least) || units[units.length - 1];
  return `${digits(v / unit[0])} ${unit[1]}`;
}
const time = (ms) => (ms === 0 ? "0" : scaled(ms, [[1e3, "s"], [1, "ms"], [1e-3, "\u00b5s"], [1e-6, "ns"]]));
const size = (b) => (b === 0 ? "0" : scaled(b, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]));
const flop = (n) => (n === 0 ? "0" : scaled(n, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]));
const rate = (bps) => scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
const small = (v) => v.toFixed(Math.min(2 - Math.floor(Math.log10(Math.abs(v))), 20)); // three digits, no exponent
const money = (usd) => (usd === 0 ? "0" : `$${Math.abs(usd) >= 1e-3 ? digits(usd) : small(usd)}`);

// ---- elements ----
function make(name, attributes = {}, ...children) {
  const drawn = ["svg", "g", "rect", "text", "line", "path", "circle", "title"].includes(name);
  const e = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.map((c) => (c === null || c === undefined ? "" : c)));
  return e;
}
const fits = (text, width) => 6.5 * text.length + 8 < width; // in a drawing's units
const page = document.getElementById("page");
const roomy = (most) => Math.min(most, page.clientWidth || most); // as wide as there is room, so that a phone shows letters in their size
// A picture that needs `width` to be read scrolls where there is less.
function scrolled(svg, width) {
  svg.style.minWidth = `${width}px`;
  return make("div", { class: "scroll" }, svg);
}
function section(title, text) {
  page.append(make("h2", {}, title));
  if (text) page.append(make("p", { class: "soft" }, text));
}

// ---- charts ----
const COLOURS = 8; // --c0 to --c7 in page.css
const plain = (v) => (v === 0 ? "0" : Math.abs(v) >= 1e5 ? flop(v) : Math.abs(v) < 1e-3 ? small(v) : digits(v));

// An axis over `values`: { at: value -> pixel, ticks: [[pixel, label]], zero: pixel or null }. A logarithmic one has values of
// 0 on a line of their own before its begin, because they have no logarithm.
function axis(values, log, from, to, format, own) {
  const known = values.filter((v) => isFinite(v)), positive = known.filter((v) => v > 0), hasZero = log && positive.length < known.length;
  const begin = from + (hasZero ? Math.sign(to - from) * 34 : 0);
  let [least, most] = log ? [Math.min(...positive), Math.max(...positive)] : [Math.min(...known), Math.max(...known)];
  if (!(least <= most)) [least, most] = log ? [1, 10] : [0, 1];
  const f = log ? Math.log10 : (v) => v, margin = Math.max((f(most) - f(least)) * 0.06, log ? 0.08 : (Math.abs(most) || 1) * 0.05);
  const a = f(least) - margin, b = f(most) + margin;
  const at = (v) => (log && !(v > 0) ? from : begin + ((f(v) - a) / (b - a)) * (to - begin));
  const ticks = (own ?? ticksOf(a, b, log)).map((v) => [at(v), format(v)]);
  return { at, ticks: hasZero ? [[from, format(0)], ...ticks] : ticks, zero: hasZero ? from : null };
}
function ticksOf(a, b, log) {
  const found = [];
  if (log) {
    const steps = b - a > 2.5 ? [1] : b - a > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8];
    for (let decade = Math.floor(a); decade <= Math.ceil(b); decade++)
      for (const step of steps) if (Math.log10(step) + decade >= a && Math.log10(step) + decade <= b) found.push(Number((step * 10 ** decade).toPrecision(3)));
    return found;
  }
  const rough = (b - a) / 6, unit = 10 ** Math.floor(Math.log10(rough)), step = unit * [1, 2, 5, 10].find((s) => s * unit >= rough);
  for (let k = Math.ceil(a / step); k * step <= b; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// chart({ title, x: { name, log, format, ticks }, y, series: [{ name, colour, points: [{ x, y, low, high, text, chosen }], line, faint }] })
// draws each series as dots. `line` connects them ("step": as a front), `low` and `high` of the points give a band,
// `colour`, `ring` (a hollow dot) and `mark` (letters beside it) are a point's own, and `chosen` is called when it is clicked.
function chart({ title, x, y, series }) {
  const width = roomy(720), height = width < 500 ? 300 : 400, left = 92, right = 16, top = 34, bottom = 52;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart" });
  const all = series.flatMap((s) => s.points);
  const ax = axis(all.map((p) => p.x), x.log, left, width - right, x.format ?? plain, x.ticks);
  const ay = axis(all.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]), y.log, height - bottom, top, y.format ?? plain, y.ticks);
  svg.append(make("text", { x: width < 500 ? 0 : left, y: 18, class: "title" }, title));
  let last = -1e9;
  for (const [at, label] of ax.ticks) {
    svg.append(make("path", { class: "grid", d: `M${at} ${top}V${height - bottom}` }));
    if (at - last < 8 * label.length + 6) continue;
    const beyond = at + 4 * label.length > width; // a label in the middle would leave the picture
    svg.append(make("text", { x: beyond ? width : at, y: height - bottom + 18, "text-anchor": beyond ? "end" : "middle" }, label));
    last = at;
  }
  for (const [at, label] of ay.ticks) svg.append(make("path", { class: "grid", d: `M${left} ${at}H${width - right}` }), make("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, label));
  svg.append(make("text", { x: (left + width - right) / 2, y: height - 10, "text-anchor": "middle", class: "soft" }, x.name));
  svg.append(make("text", { transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "soft" }, y.name));
  series.forEach((s, i) => drawSeries(svg, s, s.colour ?? `var(--c${i % COLOURS})`, ax.at, ay.at));
  return svg;
}
function drawSeries(svg, s, colour, atX, atY) {
  const place = (v) => v.toFixed(1), points = s.points.map((p) => [atX(p.x), atY(p.y)]);
  const banded = s.points.length > 1 && s.line && s.points.every((p) => p.low !== undefined);
  if (banded) {
    const edge = s.points.map((p) => `${place(atX(p.x))} ${place(atY(p.high))}`), back = s.points.map((p) => `${place(atX(p.x))} ${place(atY(p.low))}`).reverse();
    svg.append(make("path", { class: "band", fill: colour, d: `M${[...edge, ...back].join("L")}Z` }));
  }
  if (s.line && points.length > 1)
    svg.append(make("path", { class: "line", stroke: colour, d: points.map(([px, py], i) => (i === 0 ? `M${place(px)} ${place(py)}` : s.line === "step" ? `H${place(px)}V${place(py)}` : `L${place(px)} ${place(py)}`)).join("") }));
  let marked = [-99, -99];
  s.points.forEach((p, i) => {
    const dot = make("circle", { cx: place(points[i][0]), cy: place(points[i][1]), r: s.faint ? 2.5 : 4.5, fill: p.colour ?? colour, class: `${s.faint ? "faint" : "dot"}${p.ring ? " ring" : ""}` }, make("title", {}, p.text));
    if (p.ring) dot.setAttribute("stroke", p.colour ?? colour);
    if (p.mark && Math.hypot(points[i][0] - marked[0], points[i][1] - marked[1]) > 14) {
      marked = points[i];
      svg.append(make("text", { x: marked[0] + 7, y: marked[1] - 4, class: "mark" }, p.mark));
    }
    if (!banded && p.low !== undefined) svg.append(make("path", { class: "line", stroke: colour, d: `M${place(points[i][0])} ${place(atY(p.low))}V${place(atY(p.high))}` }));
    if (p.chosen) {
      dot.setAttribute("tabindex", 0);
      for (const event of ["click", "focus"]) dot.addEventListener(event, () => p.chosen(dot));
    }
    svg.append(dot);
  });
}
const legend = (names) => make("p", { class: "legend" }, ...names.map((name, i) => make("span", {}, make("i", { style: `background: var(--c${i % COLOURS})` }), name)));

// ---- tables ----
// A table of rows of cells, { text, value, left, cls } or text (cls "long": it wraps); a click on a heading sorts.
function sortable(headings, rows, id) {
  let sorted = null, up = true;
  const box = make("div", { class: "scroll" }), valueOf = (cell) => cell.value ?? cell.text ?? cell;
  const order = (a, b) => {
    const p = valueOf(a[sorted]), q = valueOf(b[sorted]);
    return (p < q ? -1 : p > q ? 1 : 0) * (up ? 1 : -1);
  };
  const heading = (name, column) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => { up = sorted === column ? !up : true; sorted = column; draw(); });
    return make("th", { class: rows.some((r) => r[column].left) ? "left" : "" }, button);
  };
  const cell = (c) => make("td", { class: [c.left ? "left" : "", c.cls ?? ""].join(" ").trim() }, c.text ?? c);
  const draw = () => {
    const shown = sorted === null ? rows : [...rows].sort(order);
    box.replaceChildren(make("table", { id }, make("tr", {}, ...headings.map(heading)), ...shown.map((r) => make("tr", {}, ...r.map(cell)))));
  };
  draw();
  return box;
}
// A box of sliders that call `draw`, and the function that adds one, from a hundredth to a hundred times `value`.
function sliders(draw) {
  const box = make("div", { class: "sliders" });
  return [box, (name, value, show, set) => {
    if (!(value > 0)) return;
    const input = make("input", { type: "range", min: -2, max: 2, step: 0.05, value: 0, "aria-label": name }), out = make("output", {}, show(value));
    input.addEventListener("input", () => { const v = value * 10 ** input.value; out.textContent = show(v); set(v); draw(); });
    box.append(make("label", {}, name, out, input));
  }];
}
const cards = (all) => make("div", { class: "cards" }, ...all.map(([name, value]) => make("div", { class: "card" }, make("b", {}, value), make("span", {}, name))));
