"""Judges machine models on points and shapes left out of the fit, beside P1's single curve, as a Markdown table.

    python tests/bench/hw_holdout.py --llmpart build/release/tools/llmpart [--data ../shared/hwdata] [--fold 3]

P1's design gets a curve for each column of the table alone, which flatters it. For each table: every `fold`-th size of each shape is left out in turn (the ends never are) and predicted by a fit of the
rest; then each linear shape is left out whole. Folds are pooled by count.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

SHAPE = {"linear": ("n", "k"), "attention": ("batch", "q_len", "heads", "kv_heads", "head_dim")}
ALONG = {"attention": "kv_len"}


def shape_of(row: dict) -> tuple:
    return (row["op"], row["dtype"], *(row[c] for c in SHAPE.get(row["op"], ("n",))))


def left_out(rows: list[dict], fold: int, folds: int) -> set[int]:
    """Indices of every `folds`-th distinct size of each shape."""
    shapes: dict[tuple, dict[int, list[int]]] = {}
    for i, row in enumerate(rows):
        size = int(row[ALONG.get(row["op"], "m")])
        shapes.setdefault(shape_of(row), {}).setdefault(size, []).append(i)
    out: set[int] = set()
    for sizes in shapes.values():
        for at, size in enumerate(sorted(sizes)):
            if 0 < at < len(sizes) - 1 and at % folds == fold:
                out.update(sizes[size])
    return out


def column_of(row: dict) -> str:
    if row["op"] == "attention":
        return "attention_decode" if row["q_len"] == "1" else "attention_prefill"
    return "linear" if row["op"] == "linear" else "pointwise"


class Judge:
    def __init__(self, llmpart: str, table: Path, folder: Path) -> None:
        self.llmpart, self.table, self.folder = llmpart, table, folder
        with table.open(newline="") as file:
            reader = csv.DictReader(file)
            self.rows, self.columns = list(reader), reader.fieldnames

    def write(self, name: str, rows: list[dict]) -> Path:
        path = self.folder / name
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(rows)
        return path

    def errors(self, test: set[int], design: str = "per-shape", column: str | None = None) -> dict:
        """Of a fit without the rows `test` on these; of one column of the table, or of all."""
        rows = [(i, r) for i, r in enumerate(self.rows) if column in (None, column_of(r))]
        (self.folder / "train").mkdir(exist_ok=True)
        train = self.write(f"train/{self.table.name}", [r for i, r in rows if i not in test])
        held = self.write("test.csv", [r for i, r in rows if i in test])
        fit = self.folder / "fit.yaml"
        subprocess.run([self.llmpart, "hw", "fit", train, "-o", fit, f"--design={design}"], check=True,
                       capture_output=True)
        result = subprocess.run([self.llmpart, "hw", "eval", fit, held, "-o", "json"], check=True, capture_output=True)
        return json.loads(result.stdout)["ops"]


def pool(parts: list[dict]) -> dict[str, tuple[int, float, float]]:
    """Points, mean absolute error and coverage over all parts."""
    sums: dict[str, list[float]] = {}
    for part in parts:
        for op, e in part.items():
            s = sums.setdefault(op, [0, 0, 0])
            s[0] += e["n"]
            s[1] += e["n"] * e["mape_pct"]
            s[2] += e["n"] * e["coverage90"]
    return {op: (int(n), error / n, covered / n) for op, (n, error, covered) in sums.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "hwdata")
    parser.add_argument("--fold", type=int, default=3)
    parser.add_argument("--tables", default="a100,h100,a40,a30,v100")
    args = parser.parse_args()
    print("| table | operator | points | error % | in the 90 % interval | single curve, error % |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in args.tables.split(","):
        with tempfile.TemporaryDirectory() as folder:
            judge = Judge(args.llmpart, args.data / f"{name}.csv", Path(folder))
            folds = [left_out(judge.rows, f, args.fold) for f in range(args.fold)]
            ours = pool([judge.errors(test) for test in folds if test])
            for op in ("linear", "attention_decode", "attention_prefill", "pointwise"):
                if op in ours:
                    paper = pool([judge.errors(test, "single-curve", op) for test in folds if test])
                    print(f"| {name} | {op} | {ours[op][0]} | {ours[op][1]:.2f} | {100 * ours[op][2]:.1f} % | "
                          f"{paper[op][1]:.1f} |", flush=True)
            shapes = sorted({shape_of(r) for r in judge.rows if r["op"] == "linear"})
            unseen = []
            for shape in shapes:
                unseen.append(judge.errors({i for i, r in enumerate(judge.rows) if shape_of(r) == shape}))
            total = pool([{"linear": u["linear"]} for u in unseen])["linear"]
            each = "/".join(f"{u['linear']['mape_pct']:.1f}" for u in unseen) if len(unseen) < 9 else "-"
            print(f"| {name} | linear, shape left out ({each}) | {total[0]} | {total[1]:.2f} | {100 * total[2]:.1f} % | |",
                  flush=True)


if __name__ == "__main__":
    main()
