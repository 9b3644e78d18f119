"""Trains the default model and its exits together, on CPU.

Usage: train.py --corpus DIR --tokenizer FILE --out FILE [--minutes M] [--threads T]

The learning rate follows a cosine over the time budget, so that a slower machine ends the same
schedule with fewer steps. A checkpoint is written every two minutes and resumed from when it exists.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from model import Config, Model

STEP_TOKENS = 3072
# Attention is half of a step at the full context, so most of the budget goes to short windows.
SHORT, LONG, SHORT_SHARE = 256, 512, 0.7
EXIT_WEIGHT = 0.3
ADAM_RATE, MUON_RATE = 3e-3, 2e-2


def load_stories(path: Path, tokenizer: Tokenizer, end: int) -> tuple[torch.Tensor, np.ndarray]:
    """All stories in one row, each followed by `end`, and the offset at which each begins."""
    texts = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [encoding.ids + [end] for encoding in tokenizer.encode_batch(texts)]
    lengths = np.array([len(row) for row in rows])
    starts = np.concatenate(([0], lengths.cumsum()[:-1]))
    return torch.tensor(np.concatenate(rows), dtype=torch.long), starts


def sample(data: torch.Tensor, starts: np.ndarray, rng: np.random.Generator, seq: int) -> torch.Tensor:
    """Every window begins at the start of a story, as a prompt does; the next stories fill it."""
    usable = starts[: np.searchsorted(starts, len(data) - seq - 1)]
    return torch.stack([data[s : s + seq + 1] for s in rng.choice(usable, STEP_TOKENS // seq, replace=False)])


def losses(model: Model, batch: torch.Tensor) -> list[torch.Tensor]:
    targets = batch[:, 1:].reshape(-1)
    return [F.cross_entropy(logits.float().flatten(0, 1), targets) for logits in model(batch[:, :-1])]


def optimizers(model: Model) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, Adam for the embedding and the norms."""
    matrices = [p for name, p in model.layers.named_parameters() if p.dim() == 2]
    inside = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in inside]
    return [torch.optim.Muon(matrices, lr=MUON_RATE, weight_decay=0.01, ns_steps=5),
            torch.optim.AdamW(rest, lr=ADAM_RATE, betas=(0.9, 0.97), weight_decay=0.0)]


def rate(progress: float) -> float:
    """Warm-up over the first 2 %, then a cosine to 2 %."""
    if progress < 0.02:
        return max(progress, 1e-3) / 0.02
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (progress - 0.02) / 0.98))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    data, starts = load_stories(args.corpus / "train.jsonl", tokenizer, tokenizer.token_to_id("<|endoftext|>"))
    model = Model(Config())
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(data)} tokens", flush=True)
    opts = optimizers(model)
    peaks = [MUON_RATE, ADAM_RATE]
    spent, step = 0.0, 0
    if args.out.exists():
        saved = torch.load(args.out, weights_only=True)
        model.load_state_dict(saved["model"])
        for opt, state in zip(opts, saved["opts"]):
            opt.load_state_dict(state)
        spent, step = saved["spent"], saved["step"]

    def save() -> None:
        state = {"model": model.state_dict(), "opts": [o.state_dict() for o in opts], "spent": spent, "step": step}
        part = args.out.with_suffix(".part")
        torch.save(state, part)
        part.replace(args.out)

    budget, saved_at, last = args.minutes * 60, time.monotonic(), time.monotonic()
    rng = np.random.default_rng(args.seed + step)
    while spent < budget:
        for opt, peak in zip(opts, peaks):
            for group in opt.param_groups:
                group["lr"] = peak * rate(spent / budget)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            parts = losses(model, sample(data, starts, rng, SHORT if spent < SHORT_SHARE * budget else LONG))
        (parts[0] + EXIT_WEIGHT * sum(parts[1:])).backward()
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        step += 1
        now = time.monotonic()
        spent, last = spent + now - last, now
        if step % 20 == 0:
            print(f"step {step} {spent:.0f}s loss {' '.join(f'{p.item():.4f}' for p in parts)}", flush=True)
        if now - saved_at > 120:
            save()
            saved_at = now
    save()


if __name__ == "__main__":
    main()
