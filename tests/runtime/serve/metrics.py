"""Reads figures with Prometheus's own parser and compares them: metrics.py URL|FILE EXPECTATION...

Every histogram must be one: buckets that grow, the last one equal to the count. An expectation is a sample and a value,
`llmpart_x_count{route="edge"}=3`, or with `>` or `<` a bound."""

import re
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def read(source):
    """The samples by (name, labels); fails on what is no exposition."""
    if source.startswith("http"):
        with urllib.request.urlopen(source, timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
            text = answer.read().decode()
    else:
        text = open(source, encoding="utf-8").read()
    samples, families = {}, set()
    for family in text_string_to_metric_families(text):
        assert family.name not in families, f"{family.name} comes twice"
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), f"{family.name} is not described"
        families.add(family.name)
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} comes twice"
            samples[key] = sample.value
        if family.type == "histogram":
            check_histogram(family)
    assert families, "no figures at all"
    return samples


def check_histogram(family):
    rows = {}
    for sample in family.samples:
        labels = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
        row = rows.setdefault(labels, {"buckets": []})
        if sample.name.endswith("_bucket"):
            row["buckets"].append((float(sample.labels["le"]), sample.value))
        else:
            row[sample.name.removeprefix(family.name)] = sample.value
    assert rows, f"{family.name} is empty"
    for labels, row in rows.items():
        bounds, counts = zip(*row["buckets"])
        what = f"{family.name} {dict(labels)}"
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == float("inf"), f"{what}: bounds {bounds}"
        assert list(counts) == sorted(counts) and counts[-1] == row["_count"], f"{what}: counts {counts}"
        least = sum(low * (n - m) for low, n, m in zip((0,) + bounds, counts, (0,) + counts))
        assert least <= row["_sum"] * (1 + 1e-6), f"{what}: a sum of {row['_sum']} is too small for its buckets"


def find(samples, text):
    name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})?", text).groups()
    return samples.get((name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels or ""))))


def main():
    samples = read(sys.argv[1])
    wrong = 0
    for expectation in sys.argv[2:]:
        sample, sign, wanted = re.fullmatch(r"(\w+(?:\{.*\})?)([=<>])(.*)", expectation).groups()
        found = find(samples, sample)
        good = found is not None and {"=": found == float(wanted), "<": found < float(wanted), ">": found > float(wanted)}[sign]
        if not good:
            print(f"wanted {expectation}, found {found}")
            wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
