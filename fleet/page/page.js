// Draws the page of a fleet from its report (base/page/page.js has what pages share).
"use strict";
const FIGURES = [["ttft_ms", "Time to first token"], ["tpot_ms", "Time per token"], ["answer_ms", "Whole answer"]], QUANTILES = ["p50", "p95", "p99"];
const { fleet, classes, pools, neighbours } = data, percent = (v) => `${digits(100 * v)} %`, month = (usd) => `${money(usd)} a month`;
const cell = (value, format) => ({ text: value === null ? "\u2013" : format(value), value: value ?? Infinity });
const runs = (c) => (c.runs !== "cloud" && c.runs !== "device" ? `${c.device_layers} layers${{ split: "", exits: " and an exit", drafts: " and drafts" }[c.runs]} on the device` : `all ${c.runs === "cloud" ? "in the cloud" : "on the device"}`);
const limited = FIGURES.flatMap(([key]) => QUANTILES.map((q) => [key, q])).filter(([key, q]) => classes.some((c) => c.limits[key][q] !== null));
const named = (pool) => (pool.region ? `${pool.machine} in ${pool.region}` : pool.machine);
// How much of the limit that is nearest in the cloud a fleet uses.
const strain = Math.max(0, ...classes.filter((c) => c.pool !== null).flatMap((c) => limited.map(([key, q]) => (c.limits[key][q] === null ? 0 : c.times[key][q] / c.limits[key][q]))));

// ---- the picture: classes, their links, and the pools that serve them ----
const LINE = 18;
function place(svg, x, y, width, lines, side) {
  const fitted = (text) => (fits(text, width) ? text : `${text.slice(0, (width - 24) / 7)}\u2026`);
  svg.append(make("rect", { x, y, width, height: LINE * lines.length + 10, rx: 4, fill: `var(--${side}-soft)`, stroke: `var(--${side})` }, make("title", {}, lines.join("\n"))));
  lines.forEach((line, i) => svg.append(make("text", { x: x + 8, y: y + LINE * (i + 1), class: i === 0 ? "" : "soft" }, fitted(line))));
}
// A square for each machine, filled as far as it is busy; those beyond the needed ones are empty.
function machines(svg, pool, x, y, width) {
  const room = Math.floor((width - 16) / 15), shown = pool.count > room ? room - 2 : pool.count;
  for (let i = 0; i < shown; i++) {
    const busy = i < pool.needed ? 11 * pool.busy : 0;
    svg.append(make("rect", { x: x + 8 + 15 * i, y: y + 11 - busy, width: 11, height: busy, fill: "var(--cloud)" }),
      make("rect", { x: x + 8 + 15 * i, y, width: 11, height: 11, fill: "none", stroke: "var(--cloud)", class: "machine" }));
  }
  if (shown < pool.count) svg.append(make("text", { x: x + 10 + 15 * shown, y: y + 10, class: "soft" }, `+${pool.count - shown}`));
}
function picture() {
  const width = roomy(960), side = Math.max(0.3 * width, 134), step = 4 * LINE + 26, height = step * Math.max(classes.length, pools.length);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "classes, links and machines" }), middle = (i) => i * step + step / 2 - 7;
  const shift = (i) => (Math.max(classes.length, pools.length) - i) / 2; // both columns have one middle
  classes.forEach((c, i) => {
    const y = middle(i + shift(classes.length));
    if (c.pool !== null) {
      const to = middle(c.pool + shift(pools.length)), x = [side, width / 2, width - side];
      svg.append(make("path", { d: `M${x[0]} ${y}C${x[1]} ${y} ${x[1]} ${to} ${x[2]} ${to}`, fill: "none", stroke: "var(--link)", "stroke-opacity": 0.5, "stroke-width": 1.5 + 8 * c.share }),
        make("text", { x: x[1], y: (y + to) / 2 - 9, "text-anchor": "middle" }, c.link));
    }
    place(svg, 1, y - 2 * LINE - 5, side, [c.name, `${percent(c.share)} of requests`, c.device, runs(c)], "device");
  });
  pools.forEach((pool, i) => {
    const x = width - side - 1, y = middle(i + shift(pools.length)) - 2 * LINE - 5;
    place(svg, x, y, side, [`${pool.count} \u00d7 ${named(pool)}`, `busy ${percent(pool.busy)}`, month(pool.usd_per_month), ""], "cloud");
    machines(svg, pool, x, y + 3 * LINE + 7, side);
  });
  return svg;
}

const mean = (v) => v.reduce((a, b) => a + b, 0) / v.length;
// Machines that a pool's requests keep busy at least, in the busiest hour.
const work = (p) => (p.utilisation * mean(p.by_hour) * data.rate_per_s) / data.mean_rate_per_s;
// Machines that are there in each hour, and those that its load keeps busy at least.
function day() {
  const all = pools.map((p) => p.by_hour.map((n) => n + p.count - p.needed)), rate = data.by_hour.rate_per_s;
  const steps = (of) => [...of, of[0]].flatMap((n, h) => (h === 0 ? [[h, n]] : [[h, of[h - 1]], [h, n]])).map(([x, y]) => ({ x, y, text: `${x}:00: ${digits(y)} machines` }));
  return chart({ title: "Machines by the hour; faint: kept busy by the load at least", x: { name: "hour of the day", format: String }, y: { name: "machines", format: digits },
    series: pools.flatMap((p, i) => [{ colour: `var(--c${i})`, line: "line", points: steps(all[i]) },
      { colour: `var(--c${i})`, faint: true, line: "line", points: steps(rate.map((r) => (work(p) * r) / data.rate_per_s)) }]) });
}

// ---- percentiles beside their limits ----
function distribution([key, title]) {
  const points = (c, of, text) => QUANTILES.flatMap((q, i) => (of[key][q] === null ? [] : [{ x: of[key][q], y: i, text: `${text} ${c.name}, ${q}: ${time(of[key][q])}` }]));
  const limits = (c) => points(c, c.limits, "limit of").map((p) => ({ ...p, low: p.y - 0.3, high: p.y + 0.3 }));
  return chart({ title, x: { name: "time; upright marks are limits", log: true, format: time }, y: { name: "share of requests", format: (i) => ["50 %", "95 %", "99 %"][i], ticks: [0, 1, 2] },
    series: classes.flatMap((c, i) => [{ colour: `var(--c${i})`, line: "line", points: points(c, c.times, "") }, { colour: `var(--c${i})`, faint: true, points: limits(c) }]) });
}
function classTable() {
  const figure = (c, key, q) => ({ text: [c.times, c.limits].map((of) => of[key][q]).filter((ms) => ms !== null).map((ms) => time(ms).replace(" ", "\u00a0")).join(" of "), value: c.times[key][q] ?? 0,
    cls: c.limits[key][q] === null ? "" : c.times[key][q] <= c.limits[key][q] ? "good wrap" : "bad wrap" });
  const columns = FIGURES.flatMap(([key]) => QUANTILES.map((q) => [key, q]));
  return sortable(["class", "requests", "runs", ...columns.map(([key, q]) => `${key.slice(0, -3)} ${q}`)], classes.map((c) =>
    [c.name, cell(c.share, percent), { text: `${c.device} over ${c.link}, ${runs(c)}`, left: true, cls: "long" }, ...columns.map(([key, q]) => figure(c, key, q))]), "classes");
}
function poolTable() {
  const spot = pools.some((p) => p.spot > 0), headings = ["machine", "machines", "needed", ...(spot ? ["spot"] : []), "classes", "sessions each", "busy", "of full passes", "an hour each", "a month", "weights", "a session", "binds"];
  return sortable(headings, pools.map((p, i) =>
    [named(p), cell(p.count, String), cell(p.needed, String), ...(spot ? [cell(p.spot, String)] : []), { text: classes.filter((c) => c.pool === i).map((c) => c.name).join(", "), left: true, cls: "wrap" }, cell(p.sessions, String), cell(p.busy, percent),
      cell(p.utilisation, percent), cell(p.usd_per_hour, money), cell(p.usd_per_month, money), cell(p.weight_bytes, size), cell(p.session_bytes, size), { text: p.binds, left: true, cls: "long" }]), "pools");
}

// ---- cost against the nearest limit ----
function front() {
  const others = [["one machine fewer", neighbours.cheaper], ["one machine more", neighbours.faster]].filter(([, n]) => n);
  const further = [...others.slice(0, neighbours.cheaper ? 1 : 0), ...neighbours.front.map((n) => [`${n.machines} machines`, n])];
  const points = [...further.map(([name, n]) => ({ name, x: n.value_ms / n.limit_ms, y: n.usd_per_month })), { name: "this fleet", x: strain, y: fleet.usd_per_month }].sort((a, b) => a.x - b.x);
  const ends = [Math.min(...points.map((p) => p.x), 1), Math.max(...points.map((p) => p.x), 1)];
  const drawn = chart({ title: "Cost against the nearest limit", x: { name: "share of the limit at its percentile", format: percent }, y: { name: "USD a month", format: money }, series: [
    { line: "step", points: points.map((p) => ({ ...p, text: `${p.name}: ${month(p.y)}, ${percent(p.x)} of its nearest limit` })) },
    { colour: "var(--good)", faint: true, line: "line", points: ends.map((x) => ({ x, y: fleet.lower_bound, text: `no fleet costs less than ${month(fleet.lower_bound)}` })) },
    { colour: "var(--bad)", faint: true, line: "line", points: [fleet.lower_bound, Math.max(...points.map((p) => p.y))].map((y) => ({ x: 1, y, text: "the limit" })) }] });
  const row = ([name, n]) => [name, { text: `${n.count} \u00d7 ${named(pools[n.pool])}`, left: true }, cell(n.usd_per_month, money), { text: `${n.figure} ${n.quantile} of ${n.class}`, left: true },
    cell(n.value_ms, time), cell(n.now_ms, time), { ...cell(n.limit_ms, time), cls: n.value_ms <= n.limit_ms ? "good" : "bad" }];
  return [make("div", { class: "charts" }, drawn), others.length > 0 ? sortable(["fleet", "pool", "a month", "nearest limit", "then", "now", "limit"], others.map(row), "neighbours") : null];
}

// ---- what if ----
// At another rate a pool has at least the machines whose full passes carry its work.
function whatIf() {
  section("What if", "The least machines that these pools need at another load, by the work of full passes, and what they cost at other prices. Limits ask for more: plan again.");
  const [box, knob] = sliders(() => draw()), table = make("div"), at = { rate: 1, price: pools.map((p) => p.usd_per_hour) };
  const draw = () => {
    const least = pools.map((p) => Math.max(1, Math.ceil(work(p) * at.rate - 1e-6)) + p.count - p.needed);
    const usd = least.map((n, i) => (n * at.price[i] * pools[i].usd_per_month) / (pools[i].count * pools[i].usd_per_hour)), sum = usd.reduce((a, b) => a + b, 0);
    table.replaceChildren(sortable(["pool", "machines at least", "a month"], [...pools.map((p, i) => [named(p), String(least[i]), money(usd[i])]), ["all", "", money(sum)]], "least"));
  };
  knob("requests in the busiest hour", data.rate_per_s, (v) => `${digits(v)}/s`, (v) => (at.rate = v / data.rate_per_s));
  pools.forEach((p, i) => knob(`an hour of ${named(p)}`, p.usd_per_hour, money, (v) => (at.price[i] = v)));
  page.append(box, table);
  draw();
}

page.append(make("h1", {}, data.spec), make("p", { class: "soft" }, `${digits(data.rate_per_s)} requests/s in the busiest hour, ${digits(data.mean_rate_per_s)} in the mean; ` +
  `${data.search.simulations} simulations, ${data.search.refuted} of them refuted${data.search.complete ? "" : "; the search was cut short"}`));
page.append(cards([["a month", money(fleet.usd_per_month)], ["no fleet of the space costs less", money(fleet.lower_bound)], ["gap", percent(fleet.gap)], ["machines", String(fleet.machines)],
  ["of requests need no cloud", percent(fleet.device_share)], [`a month for a ${data.one_more.of} in the mean`, money(data.one_more.mean_usd_per_month)], [`for one ${data.one_more.of} more, at least`, money(data.one_more.least_usd_per_month)]]));
section("The fleet", "A line is as wide as its share of the requests. A square is a machine, filled as far as it is busy; those beyond the needed ones are empty.");
page.append(picture());
if (pools.length > 0) page.append(poolTable());
if (pools.length > 0 && data.by_hour) page.append(legend(pools.map(named)), make("div", { class: "charts" }, day()));
section("Classes", "Percentiles by the simulation, beside their limits.");
page.append(legend(classes.map((c) => c.name)), make("div", { class: "charts" }, ...FIGURES.map(distribution)), classTable());
if (pools.length > 0) {
  section("The next fleets", "A machine fewer where that exceeds limits least, and one more, and further ones, where a limit is nearest in the cloud. Green: no fleet of the space costs less. Red: the limit.");
  page.append(...front());
  whatIf();
}
