"""Trains the router's embedded decision model on random decision tasks, on CPU.

Usage: learn.py --out FILE [--minutes M] [--threads T] [--seed S]

Every group of a prompt is a query over the groups before it, so one prompt of 32 examples teaches 32 decisions. The learning rate
follows a cosine over the time budget.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent.parent / "default-model"))
from model import Config, Model  # noqa: E402  (the default model's architecture)
from tasks import ACTION0, ACTIONS, GROUP, MOST_EXAMPLES, RANKS, REWARD0, SLOTS, VOCAB, Tasks  # noqa: E402

BATCH = 64
CONFIG = Config(vocab=VOCAB, dim=64, layers=3, heads=4, kv_heads=4, head_dim=16, ffn=128, exits=(), context=256)


def decisions(model: Model, ids: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the actions at every query [batch][groups][actions]; actions not offered get none."""
    logits = model(ids)[0][:, SLOTS::GROUP, ACTION0 : ACTION0 + len(ACTIONS)].float()
    return logits.masked_fill(mean.isinf(), -30.0).log_softmax(-1)


def batch_of(rng: np.random.Generator, size: int, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids, _, mean = Tasks(rng, size).prompt(groups)
    return torch.from_numpy(ids[:, :-2]), torch.from_numpy(mean)


def regret(logp: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Of the best decision, as a share of what a uniform guess loses [groups]."""
    best = mean.max(-1).values
    lost = best - mean.gather(-1, logp.argmax(-1, keepdim=True))[..., 0]
    finite = ~mean.isinf()
    guess = best - torch.where(finite, mean, 0.0).sum(-1) / finite.sum(-1)
    return lost.sum(0) / guess.sum(0)


def order_rewards(model: Model, generator: torch.Generator) -> None:
    """Rewards of near ranks start near each other: an order that the model need not find out."""
    weight = model.embed_tokens.weight
    rank = torch.arange(2 * RANKS) // 2 / RANKS
    bad = torch.arange(2 * RANKS) % 2
    waves = torch.stack([torch.cos(torch.pi * k * rank) / k for k in (1, 2, 3, 5, 8)] + [bad - 0.5], dim=1)
    directions = torch.randn(waves.shape[1], weight.shape[1], generator=generator)
    with torch.no_grad():
        weight[REWARD0:] = 0.05 * waves @ directions


def optimizers(model: Model) -> list[torch.optim.Optimizer]:
    matrices = [p for p in model.layers.parameters() if p.dim() == 2]
    inside = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in inside]
    return [torch.optim.Muon(matrices, lr=1e-2, weight_decay=0.01), torch.optim.AdamW(rest, lr=2e-3, weight_decay=0.0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    model = Model(CONFIG)
    order_rewards(model, torch.Generator().manual_seed(args.seed))
    opts = optimizers(model)
    peaks = [group["lr"] for opt in opts for group in opt.param_groups]
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    budget, begin, step, smooth = args.minutes * 60, time.monotonic(), 0, 0.0
    while (spent := time.monotonic() - begin) < budget:
        progress = spent / budget
        for opt, peak in zip(opts, peaks):
            opt.param_groups[0]["lr"] = peak * min(1.0, (step + 1) / 200) * (0.02 + 0.49 * (1 + math.cos(math.pi * progress)))
        ids, mean = batch_of(rng, BATCH, int(rng.integers(4, (MOST_EXAMPLES if progress > 0.3 else 12) + 2)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logp = decisions(model, ids, mean)
        loss = F.nll_loss(logp.flatten(0, 1), mean.argmax(-1).flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        step += 1
        smooth = 0.98 * smooth + 0.02 * float(regret(logp.detach(), mean)[4:].mean() if mean.shape[1] > 5 else smooth)
        if step % 100 == 0:
            print(f"step {step} {spent:.0f}s loss {loss.item():.4f} regret {smooth:.4f}", flush=True)
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
