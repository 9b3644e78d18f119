// Draws the page of a plan over places (base/page/page.js has what pages share). Its data is the report's JSON.
const NAMES = data.places.map((p) => p.name), colour = (place) => `var(--c${NAMES.indexOf(place) % COLOURS})`;

// ---- summary ----
function summary() {
  const { plan, model, workload } = data;
  page.append(make("h1", {}, model.name));
  page.append(make("p", { class: "soft" }, `${scaled(model.params, [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"], [1, ""]])} parameters, ` +
    `${model.layers} layers, ${size(model.weight_bytes)}; over ${NAMES.length} places; ${workload.isl} prompt tokens, ${workload.osl} generated`));
  const pair = data.pairs.filter((p) => p.feasible).sort((a, b) => a.objective - b.objective)[0];
  const verdict = !plan.feasible ? `No plan was found that meets the limit on ${plan.binding ?? "a resource"}.` : !pair ? "No pair of the device and another place meets the limits."
    : pair.objective > 0 ? `The plan saves ${digits(100 * (1 - plan.objective / pair.objective))} % over the best pair, with ${pair.with}.` : "The best pair is as good.";
  page.append(make("p", {}, make("b", { class: plan.feasible ? "good" : "bad" }, plan.feasible ? "Feasible. " : "Infeasible. "), verdict));
  page.append(cards([["time to first token", time(plan.ttft_ms)], ["time per token", time(plan.tpot_ms)], ["per million tokens", money(plan.cost_per_mtok_usd)],
    ["a request", time(plan.e2e_ms)], ["energy of a request", `${digits(plan.energy_j)} J`]]));
}

// ---- where the layers run ----
function strip(stage, ranges) {
  const least = 110 + 90 * ranges.length, width = Math.max(roomy(960), least), left = 110, row = 30, gap = 8, height = NAMES.length * (row + gap) + 8;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${stage}: layers and places` });
  NAMES.forEach((name, i) => svg.append(make("text", { x: 0, y: i * (row + gap) + row / 2 + 4, class: "soft" }, name)));
  const w = (width - left) / ranges.length - 3;
  ranges.forEach((range, i) =>
    range.places.forEach((place) => {
      const x = left + i * (w + 3), y = NAMES.indexOf(place) * (row + gap);
      svg.append(make("rect", { x, y, width: w, height: row, rx: 4, fill: colour(place), "fill-opacity": 0.2, stroke: colour(place) },
        make("title", {}, `${range.layers} at ${place}`)));
      if (fits(range.layers, w)) svg.append(make("text", { x: x + w / 2, y: y + row / 2 + 4, "text-anchor": "middle" }, range.layers));
    }));
  return scrolled(svg, least);
}

// ---- tables ----
const cell = (value, format) => ({ text: format(value), value });
function places() {
  const rows = data.plan.places.map((p, i) => [p.name, { text: data.places[i].title, left: true }, cell(p.prefill_ms, time), cell(p.decode_ms, time), cell(p.request_ms, time),
    cell(p.cost_usd, money), cell(p.weight_bytes, size), cell(p.memory_bytes, size), cell(data.places[i].memory_limit_bytes ?? 0, (b) => (b ? size(b) : "any"))]);
  return sortable(["place", "machine", "first token", "each token", "request", "cost", "weights", "memory", "limit"], rows, "places");
}
function links() {
  const rows = data.plan.links.map((l) => [`${l.from} to ${l.to}`, l.messages_prefill, cell(l.bytes_prefill, size), l.messages_decode, cell(l.bytes_decode, size), cell(l.kv_move_bytes, size)]);
  return rows.length ? sortable(["link", "messages, first token", "bytes", "messages, each token", "bytes", "KV caches after the prompt"], rows, "links") : make("p", {}, "Nothing crosses a link.");
}
function plans() {
  const row = (name, p) => [name, cell(p.ttft_ms, time), cell(p.tpot_ms, time), cell(p.e2e_ms, time), cell(p.cost_per_mtok_usd, money), { text: p.feasible ? "yes" : `no: ${p.binding}`, cls: p.feasible ? "good" : "bad" }];
  return sortable(["plan", "TTFT", "TPOT", "request", "per million tokens", "meets the limits"],
    [row("this plan", data.plan), ...data.pairs.map((p) => row(`${NAMES[0]} and ${p.with}`, p))], "plans");
}
function operators() {
  const search = make("input", { type: "search", placeholder: "filter by name, kind, stage or place" }), box = make("div");
  const draw = () => {
    const wanted = search.value.toLowerCase();
    const rows = data.operators.filter((o) => `${o.name} ${o.kind} ${o.stage} ${o.place}`.toLowerCase().includes(wanted));
    box.replaceChildren(sortable(["operator", "kind", "layer", "stage", "place", "FLOP", "bytes", ...NAMES], rows.map((o) =>
      [o.name, { text: o.kind, left: true }, o.layer, o.stage, { text: o.place, left: true }, cell(o.flops, flop), cell(o.bytes, size), ...o.ms.map((ms) => cell(ms, time))]), "operators"));
  };
  search.addEventListener("input", draw);
  draw();
  page.append(make("p", {}, search), box);
}

// ---- the page ----
summary();
section("Where the layers run", "A box is a run of layers in one place, or in several that divide it.");
Object.entries(data.plan.layers).forEach(([stage, ranges]) => page.append(make("p", {}, stage), strip(stage, ranges)));
section("Places");
page.append(places());
section("Links");
page.append(links());
section("Plans", "This one, and those of the device and one other place.");
page.append(plans());
section("Operators", "Times in each place; a click on a heading sorts.");
operators();
