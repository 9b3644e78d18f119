// Draws the page of a fleet's simulation from its JSON (base/page/page.js has what pages share).
"use strict";
const FIGURES = [["ttft", "Time to first token"], ["tpot", "Time per token"], ["answer", "Whole answer"]], QUANTILES = ["p50", "p95", "p99"];
const names = data.points[0].classes.map((c) => c.name), varied = data.varied ? [data.varied] : [], percent = (v) => `${digits(100 * v)} %`;
const cell = (v, format) => ({ text: v === null ? "\u2013" : format(v), value: v ?? Infinity }), kept = (keeps) => ({ text: keeps ? "yes" : "no", cls: keeps ? "good" : "bad" });
const at = (p) => varied.map(() => cell(p.value, plain));

// A percentile of each class over what is varied, with its 95 % interval.
const figure = ([key, title], q) => chart({ title: `${title}, ${q}`, x: { name: data.varied }, y: { name: "", format: time }, series: names.map((name, i) => ({ name, line: "line",
  points: data.points.filter((p) => p.classes[i][`${key}_ms`][q] !== null).map((p) => {
    const y = p.classes[i][`${key}_ms`][q], half = p.classes[i][`${key}_half95_ms`][q] ?? 0;
    return { x: p.value, y, low: y - half, high: y + half, text: `${name}, ${data.varied} ${plain(p.value)}: ${time(y)} \u00b1 ${time(half)}` };
  }) })) });

page.append(make("h1", {}, data.fleet), make("p", { class: "soft" }, `${data.runs} run${data.runs === 1 ? "" : "s"} of ${data.requests} requests; seed ${data.seed}`));
if (data.varied) {
  page.append(legend(names), make("div", { class: "charts" }, ...FIGURES.map((f) => figure(f, "p95")),
    chart({ title: "Cost", x: { name: data.varied }, y: { name: "USD a month", format: money }, series: [{ name: "fleet", line: "line", points: data.points.map((p) => ({ x: p.value, y: p.usd_per_month,
      text: `${data.varied} ${plain(p.value)}: ${money(p.usd_per_month)} a month, limits ${p.keeps_limits ? "hold" : "break"}` })) }] })));
} else page.append(cards([["a month", money(data.points[0].usd_per_month)], ["all limits hold", data.points[0].keeps_limits ? "yes" : "no"]]));
section("Classes", "Percentiles in the mean of the runs.");
page.append(sortable([...varied, "class", "requests", "limits hold", ...FIGURES.flatMap(([key]) => QUANTILES.map((q) => `${key} ${q}`))], data.points.flatMap((p) => p.classes.map((c) =>
  [...at(p), { text: c.name, left: true }, cell(c.requests, String), kept(c.keeps_limits), ...FIGURES.flatMap(([key]) => QUANTILES.map((q) => cell(c[`${key}_ms`][q], time)))])), "classes"));
section("Machines", "Rented in the mean; energy of a month.");
page.append(sortable([...varied, "machine", "machines", "busy", "a month", "energy in passes", "energy at rest", "failures a month"], data.points.flatMap((p) => p.pools.map((pool) =>
  [...at(p), { text: pool.machine, left: true }, cell(pool.machines, digits), cell(pool.busy, percent), cell(pool.usd_per_month, money), cell(pool.busy_kwh_per_month, (v) => `${digits(v)} kWh`),
    cell(pool.idle_kwh_per_month, (v) => `${digits(v)} kWh`), cell(pool.failures_per_month, digits)])), "pools"));
