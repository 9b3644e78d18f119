"""Compares the log of a server with its histograms and with the answers that clients got: log.py LOG METRICS_URL ANSWER...

Each ANSWER is a file with one JSON answer, in the order of the lines."""

import json
import re
import sys

from metrics import read

TIMES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "queue_ms": "queue", "decision_ms": "decision", "total_ms": "request"}


def check_line(line, answer):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
    assert re.fullmatch(r"[0-9a-f]{32}", line["trace_id"]), line
    for key, kind in {"id": str, "asked": str, "stream": bool, "route": str, "model": str, "decided_by": str,
                      "decided": str, "propensity": (int, float), "fell_back": bool, "prompt_tokens": int,
                      "cached_tokens": int, "tokens": int, "decision_ms": float, "queue_ms": float, "total_ms": float}.items():
        assert isinstance(line[key], kind), f"{key}: {line}"
    if "error" in answer:
        assert line["error"] == answer["error"]["message"] and line["tokens"] == 0 and "ttft_ms" not in line, line
        return
    usage = answer["usage"]
    assert "error" not in line, line
    assert line["prompt_tokens"] == usage["prompt_tokens"] and line["tokens"] == usage["completion_tokens"], line
    assert line["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"], line
    assert answer["id"].endswith("-" + line["id"]) and line["model"] == answer["model"], line
    assert ("tpot_ms" in line) == (line["tokens"] > 1), line
    parts = line["queue_ms"], line["ttft_ms"] + line.get("tpot_ms", 0) * (line["tokens"] - 1)
    assert all(0 <= part <= line["total_ms"] + 1 for part in parts), line


def main():
    lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    answers = [json.load(open(path, encoding="utf-8")) for path in sys.argv[3:]]
    samples = read(sys.argv[2])
    assert len(lines) == len(answers), f"{len(lines)} lines of {len(answers)} answers"
    assert len({line["id"] for line in lines}) == len(lines), "an id comes twice"
    for line, answer in zip(lines, answers):
        check_line(line, answer)
    for route in sorted({line["route"] for line in lines}):
        for key, name in TIMES.items():
            of = [line[key] / 1000 for line in lines if line["route"] == route and key in line and "error" not in line]  # refused: not of the route
            labels = frozenset({("route", route)})
            count, total = (samples[f"llmpart_{name}_seconds_{part}", labels] for part in ("count", "sum"))
            assert count == len(of), f"{name} of {route}: {count} in the histogram, {len(of)} in the log"
            assert abs(total - sum(of)) <= 1e-6 * len(of), f"{name} of {route}: {total} s in the histogram, {sum(of)} s in the log"


if __name__ == "__main__":
    main()
