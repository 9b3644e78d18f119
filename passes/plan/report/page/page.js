// Draws the page of a report (base/page/page.js has what pages share). Times are in ms, sizes in bytes, cost in USD.
// ---- the closed forms of a placement ----
// The same as the planner's: a message costs half a round trip, its bytes the bandwidth. A decode that streams waits only for a slow link.
function evaluate(plan, at) {
  const message = at.rtt / 2, perByte = [8e3 / at.up, 8e3 / at.down].map((ms) => ms * data.link_share);
  const link = (s) => (data.link ? SIDES.reduce((sum, _, i) => sum + s.messages[i] * message + s.bytes[i] * perByte[i], 0) : 0);
  const moves = data.link ? plan.move_bytes.reduce((sum, b, i) => sum + (b > 0 ? message + b * perByte[i] : 0), 0) : 0;
  const [first, next] = plan.stages, steps = data.steps;
  const parts = [first, next].map((s) => ({ device: s.busy_ms[0], cloud: s.busy_ms[1], link: link(s) }));
  if (data.link && plan.streams) parts[1].link = Math.max(0, next.bytes[1] * perByte[1] - next.busy_ms[1]);
  parts[0].link += moves;
  const total = (p) => p.device + p.cloud + p.link;
  const busy = [first.busy_ms[0] + steps * next.busy_ms[0], first.busy_ms[1] + (steps * next.busy_ms[1]) / data.shared];
  const cost = 1e-3 * (busy[0] * at.price[0] + busy[1] * at.price[1]);
  const ttft = total(parts[0]), tpot = total(parts[1]);
  const holds = plan.memory_bytes.every((b, i) => !(data.memory_limit[i] > 0) || b <= data.memory_limit[i]);
  return { ttft, tpot, parts, cost, mtok: (cost / data.tokens) * 1e6, request: ttft + steps * tpot,
    meets: holds && !(at.ttft > 0 && ttft > at.ttft) && !(at.tpot > 0 && tpot > at.tpot) };
}
const asked = { rtt: data.link ? data.link.rtt_ms : 0, up: data.link ? data.link.up_bps : 1, down: data.link ? data.link.down_bps : 1,
  price: data.price, ttft: data.sla[0], tpot: data.sla[1] };

// ---- summary ----
function summary() {
  const p = data.plans[0], figures = data.figures;
  page.append(make("h1", {}, data.name));
  const machines = data.cloud ? `${data.device} and ${data.cloud}, over ${data.link ? data.link.name : "no link"}` : data.device;
  page.append(make("p", { class: "soft" }, `${scaled(data.params, [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"], [1, ""]])} parameters, ` +
    `${data.layers} layers, ${size(data.weight_bytes)}; on ${machines}; ${data.isl} prompt tokens, ${data.osl} generated`));
  page.append(make("p", {}, make("b", { class: data.feasible ? "good" : "bad" }, data.feasible ? "Feasible. " : "Infeasible. "), data.verdict));
  const shown = [["time to first token", time(figures.ttft_ms)], ["time per token", time(figures.tpot_ms)], ["per million tokens", money(figures.mtok)],
    ["device memory", size(p.memory_bytes[0])], ["cloud memory", size(p.memory_bytes[1])],
    ["sent up in a request", size(figures.bytes_up)], ["sent down in a request", size(figures.bytes_down)]];
  page.append(cards(shown));
}

// ---- where the layers run ----
const STRIP = 620; // the least width of a strip
function strip(stage) {
  const width = Math.max(roomy(960), STRIP), left = 62, row = 34, gap = 26, height = 2 * row + gap + 44;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${stage.name}: layers and machines` });
  const weight = (r) => 2 + Math.sqrt(r.last - r.first + 1), whole = stage.ranges.reduce((sum, r) => sum + weight(r), 0);
  const y = [20, 20 + row + gap], centre = new Map();
  SIDES.forEach((side, i) => svg.append(make("text", { x: 0, y: y[i] + row / 2 + 4, class: "soft" }, side)));
  let x = left;
  for (const r of stage.ranges) {
    const w = ((width - left) * weight(r)) / whole - 3;
    SIDES.forEach((side, i) => {
      if (!r.ops[i]) return;
      const box = make("rect", { x, y: y[i], width: w, height: row, rx: 4, fill: `var(--${side}-soft)`, stroke: `var(--${side})` },
        make("title", {}, `${r.name} on the ${side}: ${r.ops[i]} operators, ${time(r.ms[i])}${r.what ? `\n${r.what}` : ""}`));
      svg.append(box);
      const label = [`${r.name}, ${time(r.ms[i])}`, r.name].find((t) => fits(t, w));
      if (label) svg.append(make("text", { x: x + w / 2, y: y[i] + row / 2 + 4, "text-anchor": "middle" }, label));
    });
    for (let layer = r.first; layer <= r.last; layer++) centre.set(layer, x + (w * (layer - r.first + 0.5)) / (r.last - r.first + 1));
    x += w + 3;
  }
  drawCrossings(svg, stage, y, row, centre, width);
  return scrolled(svg, STRIP);
}
function drawCrossings(svg, stage, y, row, centre, width) {
  stage.crossings.forEach((c) => {
    const x = Math.min(width - 4, c.to > data.layers ? width - 6 : centre.get(c.to) ?? width - 6), down = c.side === 0;
    const from = down ? y[0] + row : y[1], to = down ? y[1] - 2 : y[0] + row + 2, tip = down ? -5 : 5;
    svg.append(make("path", { d: `M${x} ${from}V${to}m-4 ${tip}l4 ${-tip}l4 ${tip}`, stroke: "var(--link)", fill: "none", "stroke-width": 1.5 },
      make("title", {}, `${c.count} tensor${c.count === 1 ? "" : "s"}, ${size(c.bytes)} to the ${SIDES[1 - c.side]}`)));
  });
  const total = (side) => stage.crossings.filter((c) => c.side === side).reduce((sum, c) => sum + c.bytes, 0);
  svg.append(make("text", { x: 62, y: y[1] + row + 18, class: "soft" },
    stage.crossings.length ? `crossing the link: ${size(total(0))} up, ${size(total(1))} down` : "nothing crosses the link"));
}

// ---- the time of a request ----
function bars(rows) {
  const width = roomy(960), narrow = width < 600, left = narrow ? 0 : 190, step = narrow ? 48 : 30, height = rows.length * step + 8, most = Math.max(...rows.map((r) => r.parts.reduce((s, p) => s + p[1], 0)), 1e-9);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "times by machine" });
  rows.forEach((r, i) => {
    const y = i * step + (narrow ? 22 : 4);
    let x = left;
    svg.append(make("text", { x: 0, y: i * step + (narrow ? 17 : 19) }, r.name));
    for (const [what, ms] of r.parts) {
      const w = (ms / most) * (width - left - 90);
      if (ms > 0) svg.append(make("rect", { x, y, width: Math.max(w, 1), height: 22, fill: `var(--${what})` }, make("title", {}, `${what}: ${time(ms)}`)));
      const label = `${what} ${time(ms)}`;
      if (fits(label, w)) svg.append(make("text", { x: x + 6, y: y + 15, style: "fill: var(--paper)" }, label));
      x += w;
    }
    svg.append(make("text", { x: x + 6, y: y + 15, class: "soft" }, time(r.parts.reduce((s, p) => s + p[1], 0))));
  });
  return svg;
}

// ---- what if ----
function whatIf() {
  section("What if", "The same placements under other conditions, by the planner's closed forms. The planner would look for a new plan: set the values that you like and compile again.");
  const [box, knob] = sliders(() => draw()), table = make("div", { class: "scroll" }), at = { ...asked, price: [...asked.price] };
  if (data.link) {
    knob("round trip", asked.rtt, time, (v) => (at.rtt = v));
    knob("bandwidth up", asked.up, rate, (v) => (at.up = v));
    knob("bandwidth down", asked.down, rate, (v) => (at.down = v));
  }
  SIDES.forEach((side, i) => knob(`price of the ${side}, an hour`, asked.price[i] * 3600, money, (v) => (at.price[i] = v / 3600)));
  knob("limit on the first token", asked.ttft, time, (v) => (at.ttft = v));
  knob("limit on each token", asked.tpot, time, (v) => (at.tpot = v));
  const draw = () => {
    const rows = data.plans.map((p) => ({ name: p.name, ...evaluate(p, at) })), feasible = rows.filter((r) => r.meets);
    const best = feasible.reduce((b, r) => (!b || r.cost < b.cost ? r : b), null);
    table.replaceChildren(make("table", { id: "plans" }, make("tr", {}, ...["plan", "TTFT", "TPOT", "request", "per million tokens", "meets the limits"].map((t) => make("th", {}, t))),
      ...rows.map((r) => make("tr", {}, make("td", {}, r.name + (r === best ? " \u2605" : "")), ...[time(r.ttft), time(r.tpot), time(r.request), money(r.mtok)].map((t) => make("td", {}, t)),
        make("td", { class: r.meets ? "good" : "bad" }, r.meets ? "yes" : "no")))));
  };
  page.append(box, table, make("p", { class: "soft" }, "\u2605 the cheapest of these that meets the limits"));
  draw();
}

// ---- operators ----
const COLUMNS = [["operator", 0], ["kind", 1], ["side", 4], ["FLOP", 5], ["bytes", 6], ["FLOP/byte", 9], ["device", 7], ["cloud", 8]];
function operators() {
  section("Operators", "A click on a layer folds it, a click on a heading sorts.");
  const stage = make("select", { "aria-label": "stage" }, ...data.stages.map((s) => make("option", {}, s.name)));
  const search = make("input", { type: "search", placeholder: "filter by name, kind or side" }), box = make("div", { class: "scroll" });
  const folded = new Set(data.operators.map((o) => o[2]));
  let sorted = null, up = true;
  data.operators.forEach((o) => o.push(o[6] > 0 ? o[5] / o[6] : 0));
  const cells = (o) => [make("td", {}, o[0]), make("td", { class: "left" }, o[1]), make("td", { class: SIDES[o[4]] }, SIDES[o[4]]), make("td", {}, flop(o[5])),
    make("td", {}, size(o[6])), make("td", {}, digits(o[9])), make("td", {}, time(o[7])), make("td", {}, time(o[8]))];
  const layerName = (l) => (l < 0 ? "before the layers" : l >= data.layers ? "after the layers" : `layer ${l}`);
  const layerRow = (layer, rows) => {
    const sum = (i) => rows.reduce((s, o) => s + o[i], 0);
    const row = make("tr", { class: "layer" }, make("td", {}, `${folded.has(layer) ? "\u25b8" : "\u25be"} ${layerName(layer)}`), make("td", { class: "left" }, `${rows.length} operators`), make("td", {}),
      ...[flop(sum(5)), size(sum(6)), "", time(sum(7)), time(sum(8))].map((t) => make("td", {}, t)));
    row.addEventListener("click", () => { folded.has(layer) ? folded.delete(layer) : folded.add(layer); draw(); });
    return row;
  };
  const heading = ([name, column]) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => { up = sorted === column ? !up : typeof data.operators[0][column] === "string"; sorted = column; draw(); });
    return make("th", { class: column === 1 ? "left" : "" }, button);
  };
  const draw = () => {
    const wanted = search.value.toLowerCase();
    const rows = data.operators.filter((o) => o[3] === stage.selectedIndex && `${o[0]} ${o[1]} ${SIDES[o[4]]}`.toLowerCase().includes(wanted));
    const table = make("table", { id: "operators" }, make("tr", {}, ...COLUMNS.map(heading)));
    if (sorted !== null) {
      const order = (a, b) => (a[sorted] < b[sorted] ? -1 : a[sorted] > b[sorted] ? 1 : 0) * (up ? 1 : -1);
      table.append(...[...rows].sort(order).map((o) => make("tr", {}, ...cells(o))));
    } else
      for (const layer of [...new Set(rows.map((o) => o[2]))]) {
        const own = rows.filter((o) => o[2] === layer);
        table.append(layerRow(layer, own), ...(folded.has(layer) && !wanted ? [] : own.map((o) => make("tr", {}, ...cells(o)))));
      }
    box.replaceChildren(table);
  };
  stage.addEventListener("change", draw);
  search.addEventListener("input", draw);
  page.append(make("p", {}, stage, " ", search), box);
  draw();
}

// ---- the page ----
summary();
section("Where the layers run", "A box is a run of layers on one machine; an arrow is a tensor that crosses the link.");
data.stages.forEach((s) => page.append(make("p", {}, s.name), strip(s)));
section("The time of a request");
const parts = evaluate(data.plans[0], asked).parts, STAGES = ["first token (prefill)", "each further token (decode)"];
const predicted = (i) => (data.exact_forms ? ["device", "link", "cloud"].map((k) => [k, parts[i][k]]) : [["device", i === 0 ? data.figures.ttft_ms : data.figures.tpot_ms]]);
const measured = (i) => (data.measured[i] > 0 ? [{ name: "  measured", parts: [["measured", data.measured[i]]] }] : []);
if (data.exact_forms || data.measured[0] > 0) page.append(bars(STAGES.flatMap((name, i) => [{ name, parts: predicted(i) }, ...measured(i)])));
if (data.measured[0] > 0)
  page.append(make("p", { class: "soft" }, `Predicted beside measured: the prediction is off by ${[0, 1].map((i) =>
    `${digits(100 * ((i === 0 ? data.figures.ttft_ms : data.figures.tpot_ms) / data.measured[i] - 1))} % for the ${i === 0 ? "first token" : "further tokens"}`).join(" and ")}.`));
if (data.exact_forms) whatIf();
else page.append(make("p", { class: "soft" }, "With early exits the time of a token depends on how often they hold: the text below has the expected times."));
operators();
page.append(make("h2", {}, "As text"), make("pre", {}, data.text));
