"""Measures the exported model on the held-out stories and writes the figures into the model card.

Usage: evaluate.py --corpus DIR --model FILE [--card README.md]

The card's text between `<!-- figures -->` and `<!-- end -->` is replaced. The tokenizer lies beside the model.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

END = "<|endoftext|>"
THETA = 0.8
PROMPTS = ("Once upon a time", "One day, Lily and her friend", "The little fox was sad because", "Tom found a map under a stone.")


class Runner:
    def __init__(self, path: Path):
        self.session = onnxruntime.InferenceSession(str(path))
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.heads = ["logits", *(name for name in self.outputs if name.startswith("exit_logits"))]
        self.past = {i.name: i.shape for i in self.session.get_inputs() if i.name.startswith("past")}

    def run(self, ids: list[int], cache: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        cache = cache or {name: np.zeros((1, shape[1], 0, shape[3]), np.float32) for name, shape in self.past.items()}
        past = next(iter(cache.values())).shape[2]
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, past + len(ids)), np.int64),
                 "position_ids": np.arange(past, past + len(ids))[None]}
        return dict(zip(self.outputs, self.session.run(None, feeds | cache)))

    def generate(self, ids: list[int], end: int, steps: int, temperature: float, seed: int) -> list[int]:
        """Greedy where the temperature is 0."""
        rng, cache, new, made = np.random.default_rng(seed), None, ids, []
        while len(made) < steps:
            out = self.run(new, cache)
            logits = out["logits"][0, -1].astype(np.float64)
            noise = rng.gumbel(size=logits.shape) * temperature
            made.append(int((logits + noise).argmax()))
            if made[-1] == end:
                break
            cache = {name: out[name.replace("past_key_values", "present")] for name in self.past}
            new = made[-1:]
        return made


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def figures(runner: Runner, rows: list[list[int]]) -> list[str]:
    """Perplexity of each head, and how far an exit that is sure (top probability >= THETA) agrees with the full model."""
    loss, sure, right, agree, count = (dict.fromkeys(runner.heads, 0.0) for _ in range(5))
    for row in rows:
        out = runner.run(row[:-1], None)
        full = out["logits"][0].argmax(axis=-1)
        for head in runner.heads:
            scores = log_softmax(out[head][0])
            same, confident = scores.argmax(axis=-1) == full, scores.max(axis=-1) >= np.log(THETA)
            loss[head] -= scores[np.arange(len(full)), row[1:]].sum()
            agree[head] += same.sum()
            sure[head] += confident.sum()
            right[head] += (same & confident).sum()
            count[head] += len(full)
    lines = [f"{len(rows)} held-out stories, {int(count['logits'])} predicted tokens.", "",
             f"| head | held-out perplexity | same token as the full model | sure (top probability >= {THETA}) | same token where sure |",
             "| --- | --- | --- | --- | --- |"]
    for head in runner.heads:
        n = count[head]
        lines.append(f"| `{head}` | {np.exp(loss[head] / n):.3f} | {100 * agree[head] / n:.1f} % | {100 * sure[head] / n:.1f} % | "
                     f"{100 * right[head] / sure[head]:.1f} % |")
    return lines


def samples(runner: Runner, tokenizer: Tokenizer, end: int) -> list[str]:
    lines = []
    for i, prompt in enumerate(PROMPTS):
        for label, temperature in (("greedy", 0.0), ("temperature 0.8", 0.8)):
            made = runner.generate(tokenizer.encode(prompt).ids, end, 300, temperature, i)
            text = tokenizer.decode([token for token in made if token != end]).replace("\n", "\n> ")
            lines += ["", f"{label}:", f"> **{prompt}**{text}"]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--card", type=Path)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.model.parent / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    texts = [json.loads(line) for line in (args.corpus / "heldout.jsonl").read_text().splitlines()]
    rows = [tokenizer.encode(text).ids + [end] for text in texts]
    runner = Runner(args.model)
    report = "\n".join(["<!-- figures -->", *figures(runner, rows), *samples(runner, tokenizer, end), "<!-- end -->"])
    print(report)
    if args.card:
        text = args.card.read_text()
        before, rest = text.split("<!-- figures -->")
        args.card.write_text(before + report + rest.split("<!-- end -->")[1])


if __name__ == "__main__":
    main()
