// Draws the page of a sweep (base/page/page.js has what pages share): the fronts of each workload with the command of a
// chosen point, then the rows. A row is [number, machines, link, workload, sla, types, scheduler, sessions, binding, front,
// TTFT, TPOT, USD per million tokens, share below the cloud alone, J, bytes up, bytes down, device's bytes, cloud's bytes].
"use strict";
const ROW = { machines: 1, link: 2, workload: 3, sla: 4, types: 5, scheduler: 6, sessions: 7, binding: 8, front: 9, ttft: 10, tpot: 11, usd: 12 };
const quoted = (text) => (/^[\w.,:=/@%+-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);

function describe(r) {
  const [device, cloud] = data.machines[r[ROW.machines]], [typeDevice, typeCloud] = data.types[r[ROW.types]], [ttft, tpot] = data.slas[r[ROW.sla]];
  return [`${device} + ${cloud}`, data.links[r[ROW.link]], data.schedulers[r[ROW.scheduler]],
    typeDevice || typeCloud ? `${typeDevice ?? "model"}/${typeCloud ?? "model"}` : null, r[ROW.sessions] > 1 ? `${r[ROW.sessions]} sessions` : null,
    ttft ? `TTFT ${time(ttft)}` : null, tpot ? `TPOT ${time(tpot)}` : null].filter((t) => t).join(", ");
}
// The command that compiles the row's plan.
function command(r) {
  const [device, cloud] = data.machines[r[ROW.machines]], [typeDevice, typeCloud] = data.types[r[ROW.types]], [ttft, tpot] = data.slas[r[ROW.sla]];
  const [isl, osl, batch] = data.workloads[r[ROW.workload]];
  const options = [["device", device], ["cloud", cloud], ["link", data.links[r[ROW.link]]], ["isl", isl], ["osl", osl], ["batch", batch > 1 && batch], ["ttft", ttft && `${ttft}ms`],
    ["tpot", tpot && `${tpot}ms`], ["dtype-device", typeDevice], ["dtype-cloud", typeCloud], ["scheduler", data.schedulers[r[ROW.scheduler]]],
    ["sessions", r[ROW.sessions] > 1 && r[ROW.sessions]], ...data.options];
  return `llmpart compile ${quoted(data.model)} ${options.filter(([, v]) => v).map(([k, v]) => quoted(`--${k}=${v}`)).join(" ")} -o plan.llmpart`;
}
const figures = (r) => `TTFT ${time(r[ROW.ttft])}, TPOT ${time(r[ROW.tpot])}, ${money(r[ROW.usd])} per million tokens`;

// ---- fronts ----
// A pair of machines has a colour; rows of the most sessions are full dots, those of fewer are rings.
const pairs = data.machines.map(([device, cloud]) => `${device} + ${cloud}`), colour = (i) => `var(--c${i % COLOURS})`;
const sessions = [...new Set(data.rows.map((r) => r[ROW.sessions]))].sort((a, b) => a - b);
function front(workload, which, show) {
  const column = which === 0 ? ROW.tpot : ROW.ttft, name = which === 0 ? "time per token" : "time to first token";
  const own = data.rows.filter((r) => r[ROW.workload] === workload && r[ROW.binding] === 0);
  const point = (r) => ({ x: r[column], y: r[ROW.usd], colour: colour(r[ROW.machines]), ring: r[ROW.sessions] < sessions[sessions.length - 1], text: `row ${r[0]}: ${describe(r)}\n${figures(r)}`, chosen: (dot) => show(r, dot) });
  const best = own.filter((r) => r[ROW.front] & (1 << which)).sort((a, b) => a[column] - b[column]);
  return chart({ title: `Cost against ${name}`, x: { name, log: true, format: time }, y: { name: "cost per million tokens", log: true, format: money },
    series: [{ name: "rows", faint: true, points: own.filter((r) => !best.includes(r)).map(point) },
      { name: "front", colour: "var(--soft)", line: "step", points: best.map((r) => ({ ...point(r), mark: String(r[0]) })) }] });
}
const HEADINGS = ["row", "combination", "feasible", "TTFT", "TPOT", "USD/Mtoken", "below cloud alone", "energy", "up", "down", "device", "cloud"];
function cells(r) {
  const shown = (v, format) => ({ text: v === null ? "\u2013" : format(v), value: v ?? Infinity }), percent = (v) => `${digits(100 * v)} %`;
  return [{ text: String(r[0]), value: r[0] }, { text: describe(r), left: true, cls: "long" }, { text: r[ROW.binding] === 0 ? "yes" : data.bindings[r[ROW.binding]], cls: r[ROW.binding] === 0 ? "good" : "soft" },
    shown(r[10], time), shown(r[11], time), shown(r[12], money), shown(r[13], percent), shown(r[14], (v) => `${digits(v)} J`), ...[15, 16, 17, 18].map((i) => shown(r[i], size))];
}
function workload(at) {
  const [isl, osl, batch] = data.workloads[at];
  section(`${isl} prompt tokens, ${osl} generated${batch > 1 ? `, batch ${batch}` : ""}`);
  const text = make("p", {}, "A front holds the rows that no other row beats in both figures, with their numbers. Choose a point to see its command."), line = make("pre", { class: "command" });
  const show = (r, dot) => {
    for (const other of page.querySelectorAll(".picked")) other.classList.remove("picked");
    dot.classList.add("picked");
    text.textContent = `row ${r[0]}: ${describe(r)}; ${figures(r)}`;
    line.textContent = command(r);
  };
  page.append(make("div", { class: "charts" }, front(at, 0, show), front(at, 1, show)), text, line);
  const best = data.rows.filter((r) => r[ROW.workload] === at && r[ROW.front] > 0);
  if (best.length > 0) text.append(` Row ${best[0][0]}:`), (line.textContent = command(best[0]));
  page.append(sortable(HEADINGS, best.map(cells), `front-${at}`));
}

page.append(make("h1", {}, data.name), make("p", { class: "soft" }, `${data.count} rows, ${data.feasible} of them feasible`), legend(pairs));
if (sessions.length > 1) page.append(make("p", { class: "soft" }, `Full dots: ${sessions[sessions.length - 1]} sessions at a time; rings: ${sessions.slice(0, -1).join(", ")}.`));
data.workloads.forEach((_, at) => workload(at));
section("Rows", data.rows.length < data.count ? `${data.rows.length} of ${data.count} rows; the tables in csv and json have all.` : "");
page.append(sortable(HEADINGS, data.rows.map(cells), "rows"));
