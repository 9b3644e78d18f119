"""Trains the router's embedded decision model on random decision tasks, on CPU, and exports it.

Usage: learn.py --out FILE.onnx [--minutes M] [--threads T] [--seed S]

Every group of a prompt is a query over the groups before it, so one prompt of 32 examples teaches 32 decisions. What is
lowered is the regret that is to be expected of a decision drawn by the model, in shares of what a uniform guess loses; the
choice itself where it matters much; and the surprise at the next reward, which teaches to look up what came of the same
words and action before. The learning rate follows a cosine over the time budget.
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
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent / "default-model"))
from export import export  # noqa: E402  (the default model's architecture and export)
from model import Config, Model  # noqa: E402
from tasks import ACTION0, ACTIONS, GROUP, MOST_EXAMPLES, RANKS, REWARD0, SLOTS, VOCAB, Tasks  # noqa: E402

BATCH = 64
RATE = 3e-3
CONFIG = Config(vocab=VOCAB, dim=64, layers=2, heads=6, kv_heads=6, head_dim=16, ffn=128, exits=(), context=256, qkv_bias=True)


def prepare(model: Model) -> None:
    """Rewards of near ranks start near each other, and the first layer's first heads start by looking 1, 2, 3 and 4 tokens
    back: a token of a group sees the whole group. Neither is fixed, but finding them out takes most of a training."""
    c = model.c
    rank = torch.arange(2 * RANKS) // 2 / (RANKS - 1)
    bad = torch.arange(2 * RANKS) % 2
    waves = torch.stack([torch.cos(torch.pi * k * rank) / k for k in (1, 2, 3, 5, 8)] + [bad - 0.5], dim=1)
    with torch.no_grad():
        model.embed_tokens.weight.normal_(std=0.5)
        model.embed_tokens.weight[REWARD0:] = 0.4 * waves @ torch.randn(waves.shape[1], c.dim)
        for layer in model.layers:
            for matrix in (p for p in layer.parameters() if p.dim() == 2):
                torch.nn.init.kaiming_uniform_(matrix, a=math.sqrt(5))
            layer.mlp.down_proj.weight.zero_()
            for bias in (layer.self_attn.q_proj.bias, layer.self_attn.k_proj.bias, layer.self_attn.v_proj.bias):
                bias.zero_()
        first = model.layers[0].self_attn
        first.q_proj.weight *= 0.2
        first.k_proj.weight *= 0.2
        sharp = 10 * c.head_dim**0.25 / math.sqrt(c.head_dim / 2)
        for head in range(GROUP - 1):
            rows = slice(head * c.head_dim, (head + 1) * c.head_dim)
            back = -(head + 1) * model.inv_freq  # turned back so far, the query meets the key there
            first.q_proj.bias[rows] = sharp * torch.cat((back.cos(), back.sin()))
            first.k_proj.bias[rows] = sharp * torch.cat((torch.ones_like(back), torch.zeros_like(back)))


def gaps(mean: Tensor) -> tuple[Tensor, Tensor]:
    """What each action loses against the best [batch][groups][actions], nothing where it is not offered; and what a uniform
    guess loses on average in each task [batch][1]."""
    best = mean.max(-1, keepdim=True).values
    gap = torch.where(mean.isinf(), 0.0, best - mean)
    return gap, (gap.sum(-1) / (~mean.isinf()).sum(-1)).mean(1, keepdim=True).clamp_min(1e-6)


def loss_of(logits: Tensor, ids: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The loss, and the regret of the likeliest action as a share of a guess's [batch][groups]."""
    choice = logits[:, SLOTS::GROUP, ACTION0 : ACTION0 + len(ACTIONS)].masked_fill(mean.isinf(), -30.0)
    gap, guess = gaps(mean)
    share = gap / guess[..., None]
    expected = (choice.softmax(-1) * share).sum(-1).mean()
    second = torch.where(gap > 0, share, torch.inf).min(-1).values.clamp(0, 3)
    surprise = F.cross_entropy(choice.flatten(0, 1), mean.argmax(-1).flatten(), reduction="none")
    rewards = logits[:, SLOTS + 1 :: GROUP, REWARD0:][:, 4:].flatten(0, 1)
    seen = F.cross_entropy(rewards, ids[:, SLOTS + 2 :: GROUP][:, 4:].flatten() - REWARD0) if len(rewards) else 0.0
    lost = share.gather(-1, choice.argmax(-1, keepdim=True))[..., 0].detach()
    return expected + 0.3 * (surprise * second.flatten()).mean() + 0.1 * seen, lost


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
    prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    budget, begin, step, smooth = args.minutes * 60, time.monotonic(), 0, 1.0
    while (spent := time.monotonic() - begin) < budget:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 100) * (0.02 + 0.49 * (1 + math.cos(math.pi * spent / budget)))
        drawn, _, mean = Tasks(rng, BATCH).prompt(int(rng.integers(4, MOST_EXAMPLES + 2)))
        ids = torch.from_numpy(drawn)
        loss, lost = loss_of(model(ids[:, :-1])[0], ids, torch.from_numpy(mean))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if lost.shape[1] > 16:
            smooth += max(0.02, 1 / step) * (float(lost[:, 8:16].mean()) - smooth)
        if step % 100 == 0:
            print(f"step {step} {spent:.0f} s, loss {loss.item():.4f}, regret after 8 to 16 examples {smooth:.4f}", flush=True)
    export(model, args.out)


if __name__ == "__main__":
    main()
