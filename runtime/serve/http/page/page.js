// Draws the page of a server from /v1/status, twice a second, and lets its reader chat. Times are in ms.
"use strict";
const page = document.getElementById("page");

// ---- elements ----
function make(name, attributes = {}, ...children) {
  const drawn = ["svg", "circle", "text", "line", "path", "title"].includes(name);
  const e = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.map((c) => (c === null || c === undefined ? "" : c)));
  return e;
}
const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 1000 ? v.toFixed(0) : String(Number(v.toPrecision(3))));
const time = (ms) => (ms === undefined ? "\u2013" : ms >= 1000 ? `${digits(ms / 1000)} s` : `${digits(ms)} ms`);
const size = (b) => (b >= 1e9 ? `${digits(b / 1e9)} GB` : b >= 1e6 ? `${digits(b / 1e6)} MB` : `${digits(b / 1e3)} kB`);
function middle(values) {
  const sorted = values.filter((v) => v !== undefined).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : undefined;
}

// ---- the server ----
let key = sessionStorage.getItem("llmpart-key") || "";
const headers = () => (key ? { Authorization: `Bearer ${key}` } : {});

const parts = {};
for (const name of ["state", "places", "charts", "requests", "reason"]) parts[name] = make("div", { id: name });
const ask = make("form", { id: "key" }, make("div", { class: "row" }, "The server requires its key:", make("input", { type: "password", autocomplete: "off" }), make("button", {}, "use it")));
ask.hidden = true;
ask.addEventListener("submit", (event) => {
  event.preventDefault();
  key = ask.querySelector("input").value;
  sessionStorage.setItem("llmpart-key", key);
  update();
});

// ---- places ----
function place(p) {
  const of = last.recent.filter((r) => r.route === p.route);
  const lines = [
    [`${p.requests} requests`, p.generating === undefined ? null : `${p.generating} generate, ${p.waiting} wait, KV caches of ${size(p.kv_bytes)}`].filter(Boolean).join("; "),
    `${p.answered} answered, ${p.failed} failed, ${p.tokens} tokens`,
    `of the last ${of.length}: TTFT ${time(middle(of.map((r) => r.ttft_ms)))}, TPOT ${time(middle(of.map((r) => r.tpot_ms)))}`];
  const card = make("div", { class: `card ${p.route}` }, make("b", {}, p.route), ` ${p.model} `, make("i", { class: p.state === "up" ? "good" : "bad" }, p.state));
  for (const line of lines) card.append(make("br"), make("span", {}, line));
  for (const w of p.workers)
    card.append(make("br"), make("span", {}, `worker ${w.address} `, make("i", { class: w.state === "up" ? "good" : "bad" }, w.state), `${w.reason ? ` (${w.reason})` : ""}, ${w.requests} requests`));
  return card;
}

// ---- rates, and times of the last requests ----
// A frame for values up to `most`, with the functions that place a share of the width, and a value.
function frame(title, most, format) {
  const width = Math.min(480, page.clientWidth || 480), height = 150, left = 64;
  const g = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  g.append(make("text", { x: 0, y: 12 }, title), make("text", { x: 0, y: 34, class: "soft" }, format(most)), make("text", { x: 0, y: height - 8, class: "soft" }, "0"));
  g.append(make("line", { x1: left, y1: height - 12, x2: width, y2: height - 12, stroke: "var(--line)" }));
  return [g, (share) => left + 8 + (width - left - 16) * share, (v) => height - 12 - ((height - 42) * v) / most];
}
function chart(title, of) {
  const shown = last.recent.filter((r) => r[of] !== undefined).reverse();
  const [g, x, y] = frame(title, Math.max(1e-3, ...shown.map((r) => r[of])), time);
  shown.forEach((r, i) => g.append(make("circle", { cx: x(i / Math.max(1, shown.length - 1)), cy: y(r[of]), r: 3.5, fill: `var(--${r.route})` },
    make("title", {}, `request ${r.number}, ${r.route}: ${time(r[of])}`))));
  return g;
}
const KEPT_MS = 180000, WINDOW_MS = 5000; // a point is the mean rate of a window
let seen = []; // [performance.now(), places]
function rates(title, count) {
  const begin = performance.now() - KEPT_MS, lines = new Map();
  seen.forEach(([at, places], i) => {
    const before = seen.slice(0, i).findLast(([t]) => at - t >= WINDOW_MS);
    for (const p of before ? places : []) {
      const old = before[1].find((q) => q.route === p.route);
      if (!old || count(p) < count(old)) continue; // the server has begun anew
      if (!lines.has(p.route)) lines.set(p.route, []);
      lines.get(p.route).push([(at - begin) / KEPT_MS, (1e3 * (count(p) - count(old))) / (at - before[0])]);
    }
  });
  const [g, x, y] = frame(title, Math.max(1, ...[...lines.values()].flat().map(([, v]) => v)), (v) => `${digits(v)}/s`);
  for (const [route, points] of lines) g.append(make("path", { d: `M${points.map(([t, v]) => `${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join("L")}`, fill: "none", stroke: `var(--${route})`, "stroke-width": 1.5 }));
  return g;
}

// ---- requests and decisions ----
let chosen = null;
const SOURCES = { only: "only one place could answer, or the request named it", model: "the router's model decided", cache: "the router's model had decided the same prompt before",
  explore: "the router explored: it drew a place at random to learn from it", rule: "a rule decided", fallback: "the router's model failed, and the rule decided" };
function explain(r) {
  const box = make("div", { class: "card" }, make("b", {}, `Request ${r.number}`));
  const say = (text) => box.append(make("p", {}, text));
  say(`${r.decided_by}: ${SOURCES[r.decided_by] || "the policy decided"}${r.reason ? ` (${r.reason})` : ""}. It took ${time(r.decision_ms)}, and the route was drawn with probability ${digits(r.propensity)}.`);
  for (const o of r.offered) say(`${o.route}: score ${digits(o.probability)}, expected delay ${time(o.expected_ms)}${o.route === r.decided ? ", decided" : ""}`);
  if (r.fell_back) say(`${r.decided} failed before the first piece of text, and ${r.route} took over.`);
  say(`It waited ${time(r.queue_ms)}; ${r.prompt_tokens >= 0 ? `${r.prompt_tokens} tokens of prompt, ` : ""}${r.tokens} tokens in ${time(r.total_ms)}: ${r.answered ? "answered" : "failed"}.`);
  if (r.decision) say(`Decision ${r.decision} of the pool.`);
  return box;
}
const COLUMNS = [["request", (r) => r.number], ["place", (r) => r.route], ["decided by", (r) => r.decided_by], ["fell back", (r) => (r.fell_back ? "yes" : "")], ["tokens", (r) => r.tokens],
  ["TTFT", (r) => time(r.ttft_ms)], ["TPOT", (r) => time(r.tpot_ms)], ["queue", (r) => time(r.queue_ms)], ["total", (r) => time(r.total_ms)], ["result", (r) => (r.answered ? "answered" : "failed")]];
function requests() {
  const body = make("tbody");
  for (const r of last.recent) {
    const row = make("tr", { class: r.number === chosen ? "chosen" : "" });
    for (const [i, [, of]] of COLUMNS.entries()) row.append(make("td", {}, i === 0 ? make("button", { type: "button" }, String(of(r))) : String(of(r))));
    row.addEventListener("click", () => { chosen = r.number; draw(); });
    body.append(row);
  }
  return make("table", {}, make("thead", {}, make("tr", {}, ...COLUMNS.map(([name]) => make("th", {}, name)))), body);
}

let last = null;
function draw() {
  const status = { ready: "ready", degraded: "degraded: a place or a worker is away, or the pool keeps no decisions", down: "no place takes requests" }[last.status];
  parts.state.replaceChildren(make("p", { class: last.status === "ready" ? "good" : "bad" }, status),
    make("p", { class: "soft" }, `${last.in_flight} requests in flight, ${last.fallbacks} were taken over by another place`),
    ...(last.prediction ? [make("p", { class: last.prediction.fits ? "good" : "bad" }, last.prediction.says)] : []));
  parts.places.replaceChildren(...last.places.map(place));
  parts.charts.replaceChildren(rates("Requests over three minutes", (p) => p.answered + p.failed), rates("Tokens over three minutes", (p) => p.tokens), chart("TTFT of the last requests", "ttft_ms"), chart("TPOT of the last requests", "tpot_ms"));
  parts.requests.replaceChildren(requests());
  const found = last.recent.find((r) => r.number === chosen);
  parts.reason.replaceChildren(found ? explain(found) : make("p", { class: "soft" }, "A click on a request explains its decision."));
  for (const p of last.places)
    if (![...route.options].some((o) => o.value === p.route)) route.append(make("option", { value: p.route }, p.route));
}
async function update() {
  try {
    const reply = await fetch("/v1/status", { headers: headers() });
    ask.hidden = reply.status !== 401;
    if (!reply.ok) return;
    last = await reply.json();
    seen = [...seen.filter(([at]) => performance.now() - at < KEPT_MS), [performance.now(), last.places]];
    draw();
  } catch {
    parts.state.replaceChildren(make("p", { class: "bad" }, "the server does not answer"));
  }
}

// ---- chat ----
const route = make("select", { "aria-label": "place" }, make("option", { value: "auto" }, "auto"));
const kind = make("select", { "aria-label": "kind" }, make("option", { value: "chat/completions" }, "chat"), make("option", { value: "completions" }, "continue a text (/v1/completions)"));
const text = make("textarea", { "aria-label": "prompt", placeholder: "Enter sends, Shift and Enter begin a line" });
const most = make("input", { type: "number", min: 1, value: 64, "aria-label": "tokens" });
const send = make("button", {}, "send"), anew = make("button", { type: "button" }, "new chat");
const legend = make("div", { id: "legend" }), answer = make("div", { id: "answer" }), course = make("p", { class: "soft", id: "course" });
const chat = make("form", { id: "chat" }, text, make("div", { class: "row" }, kind, "by", route, "at most", most, "tokens", send, anew));
let machines = [], turns = []; // turns: the messages of the chat so far
function put(piece, machine) {
  let at = machines.indexOf(machine);
  if (at < 0) {
    at = machines.push(machine) - 1;
    legend.append(make("span", { class: `m${at % 6}` }, machine));
  }
  answer.append(make("span", { class: `m${at % 6}`, title: machine }, piece));
}
// The text of an event of the stream.
function take(line) {
  if (!line.startsWith("data: {")) return "";
  const event = JSON.parse(line.slice(6));
  if (event.error) throw new Error(event.error.message);
  const choice = (event.choices || [])[0];
  const piece = (choice && (choice.text || (choice.delta && choice.delta.content))) || "";
  if (piece) put(piece, event.machine || "unknown");
  return piece;
}
async function refusal(reply) {
  const why = await reply.text();
  try {
    return JSON.parse(why).error.message;
  } catch {
    return why || reply.statusText;
  }
}
async function talk(prompt) {
  const body = { model: route.value, max_tokens: Number(most.value), stream: true, machines: true }, chats = kind.value !== "completions";
  if (chats) body.messages = [...turns, { role: "user", content: prompt }];
  else body.prompt = prompt;
  const begun = performance.now();
  const reply = await fetch(`/v1/${kind.value}`, { method: "POST", headers: { "Content-Type": "application/json", ...headers() }, body: JSON.stringify(body) })
    .catch(() => { throw new Error("the server does not answer"); });
  if (!reply.ok) throw new Error(`${await refusal(reply)} (status ${reply.status})`);
  course.textContent = `answered by ${reply.headers.get("X-Llmpart-Route")}, first bytes after ${time(performance.now() - begun)}`;
  let rest = "", written = "";
  const decoder = new TextDecoder(), reader = reply.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) written += take(line);
  }
  course.append(`, complete after ${time(performance.now() - begun)}`);
  if (chats) turns = [...body.messages, { role: "assistant", content: written }];
}
function clear() {
  machines = [];
  turns = [];
  legend.replaceChildren();
  answer.replaceChildren();
}
chat.addEventListener("submit", (event) => {
  const prompt = text.value;
  event.preventDefault();
  if (send.disabled) return;
  if (kind.value === "completions") clear();
  answer.append(make("p", { class: "user" }, prompt));
  course.textContent = "";
  send.disabled = anew.disabled = true;
  talk(prompt).then(() => { text.value = ""; }, (error) => answer.append(make("p", { class: "bad" }, `failed: ${error.message}`)))
    .finally(() => { send.disabled = anew.disabled = false; update(); });
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  chat.requestSubmit();
});
anew.addEventListener("click", clear);

// ---- the page ----
parts.places.className = "cards";
parts.charts.className = "charts";
parts.requests.className = "scroll";
page.append(make("h1", {}, "llmpart serve"), ask, parts.state, parts.places,
  make("h2", {}, "Chat"), make("p", { class: "soft" }, "Each machine that writes tokens has a colour."), legend, answer, course, chat,
  make("h2", {}, "Rates and times"), parts.charts, make("h2", {}, "Requests and their decisions"), parts.requests, parts.reason);
update();
setInterval(update, 500);
