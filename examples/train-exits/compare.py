"""Writes the effect of training as tables in a page, from the output of `llmpart calibrate --at=... -o json` before and after it.

Usage: compare.py --before FILE --after FILE [--card README.md]

The page's text between `<!-- figures -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path


def alone(found: dict, layer: int) -> list[dict]:
    return next(exit["alone"] for exit in found["exits"] if exit["layer"] == layer)


def cell(step: dict) -> str:
    agreement = step["agreement"]
    return f"{100 * step['exit_rate']:.1f} / " + ("-" if agreement is None else f"{100 * agreement:.1f}")


def tables(before: dict, after: dict) -> list[str]:
    tokens, documents = after["held_out"]["tokens"], after["held_out"]["documents"]
    assert before["held_out"] == after["held_out"] and before["data_sha256"] == after["data_sha256"]
    thetas = [step["theta"] for step in after["exits"][0]["alone"]]
    lines = [f"{documents} held-out conversations, {tokens} tokens of answers. Each exit by itself: % of tokens with at least this confidence / % of these "
             "that equal the full model's:", "", "| exit | " + " | ".join(f"theta {theta:g}" for theta in thetas) + " |", "| --- " * (len(thetas) + 1) + "|"]
    for exit in after["exits"]:
        for name, found in (("before", before), ("after", after)):
            lines.append(f"| {exit['layer']}, {name} | " + " | ".join(cell(step) for step in alone(found, exit["layer"])) + " |")
    lines += ["", "Both exits in `threshold` mode, % of tokens:", "", "| theta | leave by an exit: before | after | differ from the full model: before | after |", "| --- " * 5 + "|"]
    for old, new in zip(before["at"], after["at"], strict=True):
        lines.append(f"| {new['theta']:g} | {100 * old['exit_rate']:.1f} | {100 * new['exit_rate']:.1f} | {100 * old['disagreement']:.2f} | {100 * new['disagreement']:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, required=True)
    parser.add_argument("--card", type=Path)
    args = parser.parse_args()
    text = "\n".join(tables(json.loads(args.before.read_text()), json.loads(args.after.read_text())))
    print(text)
    if args.card:
        page = args.card.read_text()
        args.card.write_text(re.sub(r"(<!-- figures -->\n).*(<!-- end -->)", lambda m: m[1] + text + "\n" + m[2], page, flags=re.S))


if __name__ == "__main__":
    main()
