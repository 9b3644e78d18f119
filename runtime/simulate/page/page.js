// Draws the page of a simulation from its JSON (base/page/page.js has what pages share).
"use strict";
const nameOf = (p) => (new Set(data.points.map((q) => q.service)).size > 1 ? `${p.service}, ${p.policy}` : p.policy);
const lines = [...new Set(data.points.map(nameOf))], seconds = (v) => (v < 0 ? `\u2212${time(-1e3 * v)}` : time(1e3 * v));
const share = (v) => `${digits(100 * v)} %`;

const varies = (points, key) => points.some((p) => p[key] !== points[0][key]); // others are figures of one value

// Means with their 95 % intervals as bands: `key` and `half` name the figure in a point.
function figure(title, key, half, format, points, at, name) {
  return chart({ title, x: { name }, y: { name: "", format },
    series: lines.map((line) => ({ name: line, line: "line", points: points(line).map((p, i) => ({ x: at(p, i), y: p[key], low: p[key] - p[half], high: p[key] + p[half],
      text: `${line}, ${name} ${plain(at(p, i))}: ${format(p[key])} \u00b1 ${format(p[half])}` })) })) });
}
function overAxis() {
  const points = (line) => data.points.filter((p) => nameOf(p) === line), name = data.varied ?? "policy";
  const at = (p) => (data.varied ? p[data.varied] : lines.indexOf(nameOf(p)));
  return [["Mean delay", "delay_s", "delay_half95_s", seconds], ["Mean reward", "reward", "reward_half95", seconds],
    ["Quality of requests that require it", "quality", "quality_half95", share], ["Mean regret", "regret", "regret_half95", seconds]]
    .filter(([, key]) => varies(data.points, key)).map(([title, key, half, format]) => figure(title, key, half, format, points, at, name));
}
// The twentieths of the runs, at the first value of the axis.
function whileLearning() {
  const points = (line) => data.points.find((p) => nameOf(p) === line).learning;
  return [["Reward while learning", "reward", "reward_half95", seconds], ["Regret while learning", "regret", "regret_half95", seconds]]
    .filter(([, key]) => varies(data.points.flatMap((p) => p.learning), key)).map(([title, key, half, format]) => figure(title, key, half, format, points, (p) => p.request, "request"));
}

page.append(make("h1", {}, data.title), make("p", { class: "soft" }, `${data.runs} run${data.runs === 1 ? "" : "s"} of ${data.requests} requests, the first ${data.warm_up} of each not counted; ` +
  `bands are 95 % intervals of the mean over ${data.runs > 1 ? "runs" : "20 parts of the run"}; seed ${data.seed}`), legend(lines));
page.append(make("div", { class: "charts" }, ...overAxis()));
section("Over the requests of a run");
page.append(make("div", { class: "charts" }, ...whileLearning()));
section("Points");
const number = (v, format) => ({ text: format(v), value: v });
page.append(sortable(["policy", data.varied ?? "service", "delay", "\u00b1", "median", "99 %", "reward", "quality", "regret", "at the edge", "edge busy", "cloud busy", "rejected"], data.points.map((p) =>
  [{ text: nameOf(p), left: true }, data.varied ? number(p[data.varied], plain) : p.service, number(p.delay_s, seconds), number(p.delay_half95_s, seconds), number(p.delay_p50_s, seconds),
    number(p.delay_p99_s, seconds), number(p.reward, seconds), number(p.quality, share), number(p.regret, seconds), number(p.edge.share, share), number(p.edge.utilisation, share),
    number(p.cloud.utilisation, share), number(p.rejected, String)]), "points"));
