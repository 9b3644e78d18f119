"""Writes the training corpus: short English stories, one per line of a JSON-lines file, from a seed.

Usage: corpus.py --out DIR [--stories N] [--seed S]. Same seed, same bytes. Every hundredth story,
by its index, goes to heldout.jsonl and is never trained on.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from plots import tell
from story import Story


def make_story(seed: int, index: int) -> str:
    """Each story has a random source of its own, so that each can be made without the others."""
    story = Story(random.Random(f"{seed}:{index}"))
    tell(story)
    if story.rng.random() < 0.15:
        story.drop_opening()
    return story.text()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--stories", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / "train.jsonl", "w") as train, open(args.out / "heldout.jsonl", "w") as heldout:
        seen: set[str] = set()
        for index in range(args.stories):
            text = make_story(args.seed, index)
            if text not in seen:
                seen.add(text)
                (heldout if index % 100 == 99 else train).write(json.dumps(text) + "\n")


if __name__ == "__main__":
    main()
