"""Checks rules of Prometheus and dashboards of Grafana against a server's figures: monitoring.py URL FILE...

Every name in their expressions must be a figure of the server, and every label, and each value that a label is compared
with, one that the figure has. Reads PromQL by itself: names, labels and functions by where they stand."""

import json
import re
import sys
import urllib.request

import yaml
from prometheus_client.parser import text_string_to_metric_families

TOKEN = re.compile(r'\s*("[^"]*"|\[[^\]]*\]|[A-Za-z_:][A-Za-z0-9_:]*|[0-9.]+(?:e[+-]?[0-9]+)?|[=!<>]=|[=!]~|.)', re.S)
WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset"}
BY_TARGET = {"instance", "job"}  # labels that Prometheus adds


def figures(url):
    """Labels and their values by sample name; of a histogram without samples as well."""
    found = {}
    with urllib.request.urlopen(url, timeout=60) as answer:
        for family in text_string_to_metric_families(answer.read().decode()):
            endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
            for ending in endings:
                found.setdefault(family.name + ending, {})
            for sample in family.samples:
                for label, value in sample.labels.items():
                    found[sample.name].setdefault(label, set()).add(value)
    return found


def faults(expression, known):
    """What is wrong in an expression."""
    tokens = [t for t in TOKEN.findall(expression) if t.strip()]
    names, grouped, depth, closing = [], set(), 0, 0
    for i, token in enumerate(tokens):
        before, after = tokens[i - 1] if i else "", tokens[i + 1] if i + 1 < len(tokens) else ""
        depth += (token in "({") - (token in ")}")
        if closing and depth < closing:
            closing = 0
        if token in "({" and before in ("by", "without", "on", "ignoring", "group_left"):
            closing = depth
        if not re.match(r"[A-Za-z_:]", token) or token in WORDS or after == "(" or after in ("by", "without"):
            continue
        if closing:
            grouped.add(token)
        elif after in ("=", "!=", "=~", "!~"):
            value = tokens[i + 2].strip('"')
            if value not in known.get(names[-1], {}).get(token, set()):
                yield f"{names[-1]} has no {token}={value}"
        elif token not in known:
            yield f"there is no figure {token}"
        else:
            names.append(token)
    if depth:
        yield "parentheses do not match"
    if not names:
        yield "no figure at all"
    for name in names:
        yield from (f"{name} has no label {label}" for label in sorted(grouped - BY_TARGET - set(known.get(name, {}))))


def expressions(path):
    """Pairs of a title and an expression; fails on what is no file of its kind."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file) if path.endswith(".json") else yaml.safe_load(file)
    if path.endswith(".json"):
        places = [(p["gridPos"]["x"] + x, p["gridPos"]["y"] + y) for p in document["panels"] for x in range(p["gridPos"]["w"]) for y in range(p["gridPos"]["h"])]
        assert len(places) == len(set(places)) and max(x for x, _ in places) < 24, "panels overlap, or are beyond the 24 columns"
        assert len({p["id"] for p in document["panels"]}) == len(document["panels"]), "two panels have one id"
        return [(p["title"], t["expr"]) for p in document["panels"] for t in p["targets"]]
    rules = [rule for group in document["groups"] for rule in group["rules"]]
    assert all(set(r) <= {"alert", "expr", "for", "labels", "annotations"} and r["annotations"]["summary"] for r in rules), "a rule has other keys"
    assert len({r["alert"] for r in rules}) == len(rules), "two rules have one name"
    return [(r["alert"], r["expr"]) for r in rules]


def main():
    known = figures(sys.argv[1])
    wrong = [f"{path}: {title}: {fault}" for path in sys.argv[2:] for title, text in expressions(path) for fault in faults(text, known)]
    print("\n".join(wrong))
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
