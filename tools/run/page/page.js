// Draws the page of a measurement from its JSON (base/page/page.js has what pages share).
"use strict";
page.append(make("h1", {}, data.bundle), make("p", { class: "soft" }, `${data.threads} thread${data.threads === 1 ? "" : "s"}, weights ${size(data.weight_bytes)}`));
page.append(cards([...data.tests.map((t) => [t.test, `${digits(t.tokens_per_s)} tokens/s`]), ["load", time(data.load_ms)], ["peak memory", size(data.peak_bytes)]]));
section("Tokens per second", "A bar is one deviation in each direction.");
page.append(chart({ title: "pp: prompts; tg: generated tokens", x: { name: "test", format: (v) => data.tests[v].test, ticks: data.tests.map((_, i) => i) }, y: { name: "tokens/s", log: true },
  series: [{ name: "measured", points: data.tests.map((t, i) => ({ x: i, y: t.tokens_per_s, low: t.tokens_per_s - t.deviation_tokens_per_s, high: t.tokens_per_s + t.deviation_tokens_per_s,
    text: `${t.test}: ${digits(t.tokens_per_s)} \u00b1 ${digits(t.deviation_tokens_per_s)} tokens/s` })) }] }));
page.append(sortable(["test", "tokens", "tokens/s", "\u00b1", "GB/s", "time"], data.tests.map((t) => [{ text: t.test, left: true }, { text: String(t.tokens), value: t.tokens },
  { text: digits(t.tokens_per_s), value: t.tokens_per_s }, { text: digits(t.deviation_tokens_per_s), value: t.deviation_tokens_per_s }, { text: digits(t.gbytes_per_s), value: t.gbytes_per_s },
  { text: time((1e3 * t.tokens) / t.tokens_per_s), value: t.tokens / t.tokens_per_s }]), "tests"));
