"""Writes docs/operators.md from ir/ops.def and docs/suites.json: python3 docs/make_operators.py

To take in new results first (needs Python's onnx; RESULTS.json is what `llmpart verify --suite=DIR -o json` printed):
    python3 docs/make_operators.py --suite "TITLE" DIR RESULTS.json
"""
import collections
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORE = ROOT / "docs" / "suites.json"
OUT = ROOT / "docs" / "operators.md"
STATES = ("passed", "failed", "unsupported")

HEAD = """# ONNX operators

Made by `python3 docs/make_operators.py` from `ir/ops.def` and `docs/suites.json`; do not edit it by hand. `llmpart support MODEL.onnx` lists the
operators of one model in the same way. An operator without a prefix is one of `ai.onnx`.

The suites are ONNX's own node tests. llmpart refuses the models of the tests that it does not run before anything runs, with node, operator, domain
and opset. Six tests of 1.21 differ: they expect results of `Attention` that ONNX has since corrected without a new opset
([ADR 12](adr/0012-attention-follows-the-newest-text.md)).
"""


def read_operators():
    """{"ai.onnx.Add": "runs"} of every entry in ops.def."""
    text = (ROOT / "ir" / "ops.def").read_text()
    found = {}
    for name, rest in re.findall(r'^LP_ONNX\(\w+, "([^"]+)",(.*)\)$', text, re.M):
        status = "decomposes" if rest.rsplit(",", 1)[1].strip() == "decomposed" else "runs"
        found[re.sub(r"^onnx\.", "ai.onnx.", name)] = status
    if not found:
        sys.exit("no operator was found in ir/ops.def")
    return found


def operators_of(model):
    """The operators that a model's main graph uses, without what only makes constants."""
    names = {f"{node.domain or 'ai.onnx'}.{node.op_type}" for node in model.graph.node}
    return names - {"ai.onnx.Constant"} or names


def take_in(title, folder, results):
    """Counts a suite's results per operator into suites.json."""
    import onnx  # pylint: disable=import-outside-toplevel

    data = json.loads(pathlib.Path(results).read_text())
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for test in data["tests"]:
        model = onnx.load(pathlib.Path(folder) / test["name"] / "model.onnx", load_external_data=False)
        for name in operators_of(model):
            counts[name][STATES.index(test["status"])] += 1
    suite = {"title": title, "operators": dict(sorted(counts.items()))}
    suite.update({state: data[state] for state in STATES})
    suite["bound"] = sum("bound" in test for test in data["tests"])
    store = [old for old in load_store() if old["title"] != title] + [suite]
    store.sort(key=lambda entry: entry["title"])
    lines = json.dumps(store, indent=1, sort_keys=True)
    STORE.write_text(re.sub(r"\[\s+(\d+),\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2, \3]", lines) + "\n")


def load_store():
    """The suites taken in so far."""
    return json.loads(STORE.read_text()) if STORE.exists() else []


def short(name):
    """The name without ai.onnx, but with any other domain."""
    rest = name.removeprefix("ai.onnx.")
    return f"`{rest if '.' not in rest else name}`"


def passes(name, suites):
    """Whether each test that uses the operator passes; an operator that no test uses has no failure."""
    return all(not any(suite["operators"].get(name, [0])[1:]) for suite in suites)


def paragraph(names):
    """The names in lines."""
    return textwrap.wrap(", ".join(short(name) for name in names) + ".", 140, break_on_hyphens=False)


def main():
    """Writes the page."""
    operators, suites = read_operators(), load_store()
    used = {name for suite in suites for name in suite["operators"]}
    built = {name for suite in suites for name, counts in suite["operators"].items() if counts[0]} - set(operators)
    operators.update(dict.fromkeys(built, "decomposes"))  # the importer builds others for them
    lines = [HEAD, "| suite | passed | passed with inputs bound | wrong | refused |", "| --- | --- | --- | --- | --- |"]
    for suite in suites:
        lines.append(f"| {suite['title']} | {suite['passed']} | {suite['bound']} | {suite['failed']} | "
                     f"{suite['unsupported']} |")
    for status, title in (("runs", "Run as they are"), ("decomposes", "Decomposed into others")):
        names = sorted(name for name in operators if operators[name] == status and passes(name, suites))
        lines += ["", f"## {title}", "", *paragraph(names)]
    partly = sorted(name for name in operators if not passes(name, suites))
    lines += ["", "## Supported in part", "", "Some tests that use these operators are refused, often for another operator of the test; `docs/suites.json` has",
              "the numbers. Those of `Attention` are the six that differ.", "", *paragraph(partly)]
    lines += ["", "## Not supported", "", "The suites use these operators too.", "", *paragraph(sorted(used - set(operators)))]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--suite":
        take_in(*sys.argv[2:])
    elif len(sys.argv) != 1:
        sys.exit(__doc__)
    main()
