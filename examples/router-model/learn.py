"""Trains the router's embedded decision model on random decision tasks, on CPU, and exports it.

Usage: learn.py --out FILE.onnx [--minutes M] [--threads T] [--seed S] [--rate R] [--begin STATE.pt] [--keep STATE.pt]

Every group of a prompt is a query over the groups before it, so one prompt of 32 examples teaches 32 decisions. What is
lowered is the regret that is to be expected of a decision drawn by the model, in shares of what a uniform guess loses (the
worth of what is learned by it included: an action nobody tried may be worth a trial); the choice itself where it matters
much; and the surprise at the next reward, which teaches to look up what came of the same words and action before. The learning rate follows a cosine over the time budget.
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
BLOCK = 16  # a token's own content, and what each of the first layer's heads brings from the tokens before
SCALE = 5  # numbers of a reward that the second layer's heads bring
CONFIG = Config(vocab=VOCAB, dim=(GROUP + 1) * BLOCK, layers=2, heads=GROUP - 1, kv_heads=GROUP - 1, head_dim=2 * BLOCK, ffn=128,
                theta=1e8, exits=(), context=256, qkv_bias=True)


def embed(model: Model) -> None:
    """Words and actions at random in the first block, rewards there by their rank, so that near ones start near each other.
    The last block is the answer's: what is known of an action there speaks for it."""
    rank = torch.arange(2 * RANKS) // 2 / (RANKS - 1)
    waves = [torch.cos(torch.pi * k * rank) for k in (1, 2, 3, 5)] + [torch.arange(2 * RANKS) % 2 - 0.5]
    weight = model.embed_tokens.weight
    weight.normal_(std=0.02)
    weight[:REWARD0, :BLOCK] += F.normalize(torch.randn(REWARD0, BLOCK), dim=-1) * BLOCK**0.5
    weight[REWARD0 : REWARD0 + 2 * RANKS, :SCALE] += 2 * torch.stack(waves, dim=1)
    for action in range(len(ACTIONS)):
        same = slice(ACTION0 + action, REWARD0, len(ACTIONS))  # however many rewards an example of it stands for
        weight[same, :BLOCK] = weight[ACTION0 + action, :BLOCK] + 0.3 * weight[same, :BLOCK] / BLOCK**0.5
        weight[ACTION0 + action, -BLOCK + SCALE * action] -= 1.0  # cos falls as the rank rises
    model.norm.weight[:-BLOCK] = 0.05


def look_back(model: Model) -> None:
    """The first layer's heads look 1, 2, 3 and 4 tokens back, so that a token of a group sees the whole group."""
    c, layer = model.c, model.layers[0].self_attn
    layer.q_proj.weight *= 0.1
    layer.k_proj.weight *= 0.1
    sharp = 10 * c.head_dim**0.25 / math.sqrt(c.head_dim / 2)
    for head in range(c.heads):
        rows, back = slice(head * c.head_dim, (head + 1) * c.head_dim), -(head + 1) * model.inv_freq
        # Rotated back by this much, it meets the key there.
        layer.q_proj.bias[rows] = sharp * torch.cat((back.cos(), back.sin()))
        layer.k_proj.bias[rows] = sharp * torch.cat((torch.ones_like(back), torch.zeros_like(back)))
        layer.v_proj.weight[rows] *= 0.1
        layer.v_proj.weight[head * c.head_dim : head * c.head_dim + BLOCK, :BLOCK] += torch.eye(BLOCK)
        layer.o_proj.weight[:, rows] *= 0.1
        block = slice((head + 1) * BLOCK, (head + 2) * BLOCK)
        layer.o_proj.weight[block, head * c.head_dim : head * c.head_dim + BLOCK] += torch.eye(BLOCK) * (BLOCK / c.dim) ** 0.5


def look_up(model: Model) -> None:
    """A head of the second layer for each action: its query at the last word meets the rewards of groups of the same words
    and that action, and it brings the reward to the answer's block. Matching uses the slow frequencies, which turn little
    over a prompt."""
    c, layer = model.c, model.layers[1].self_attn
    slow = torch.nonzero(model.inv_freq * c.context < 1.0)[:, 0]
    slow = torch.cat((slow, slow + c.head_dim // 2))
    for action in range(len(ACTIONS)):
        first = action * c.head_dim
        rows = slice(first, first + c.head_dim)
        for matrix in (layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight):
            matrix[rows] *= 0.1
        layer.o_proj.weight[:, rows] *= 0.1
        for slot in range(SLOTS):
            turn = torch.randn(len(slow), BLOCK) * (2.2 / BLOCK) ** 0.5
            layer.q_proj.weight[first + slow, slot * BLOCK : (slot + 1) * BLOCK] += turn
            layer.k_proj.weight[first + slow, (slot + 2) * BLOCK : (slot + 3) * BLOCK] += turn
        mark = F.normalize(torch.randn(len(slow)), dim=0) * 6
        content = model.embed_tokens.weight[ACTION0 + action, :BLOCK]
        layer.q_proj.bias[first + slow] += mark
        layer.k_proj.weight[first + slow, BLOCK : 2 * BLOCK] += torch.outer(mark, content) / BLOCK
        layer.v_proj.weight[first : first + SCALE, :SCALE] += torch.eye(SCALE)
        answer = c.dim - BLOCK + SCALE * action
        layer.o_proj.weight[answer : answer + SCALE, first : first + SCALE] += torch.eye(SCALE)


def prepare(model: Model) -> None:
    """Starts where a lookup of the nearest examples is roughly made: finding that out takes most of a training. Nothing of it
    is fixed; training makes the rest of it."""
    with torch.no_grad():
        for layer in model.layers:
            for matrix in (p for p in layer.parameters() if p.dim() == 2):
                torch.nn.init.kaiming_uniform_(matrix, a=math.sqrt(5))
            layer.mlp.down_proj.weight.zero_()
            for bias in (layer.self_attn.q_proj.bias, layer.self_attn.k_proj.bias, layer.self_attn.v_proj.bias):
                bias.zero_()
        embed(model)
        look_back(model)
        look_up(model)


def gaps(value: Tensor) -> tuple[Tensor, Tensor]:
    """What each action loses against the best [batch][groups][actions], nothing where it is not offered; and what a uniform
    guess loses on average in each task [batch][1]."""
    best = value.max(-1, keepdim=True).values
    gap = torch.where(value.isinf(), 0.0, best - value)
    return gap, (gap.sum(-1) / (~value.isinf()).sum(-1)).mean(1, keepdim=True).clamp_min(1e-6)


def loss_of(logits: Tensor, ids: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The loss, and the regret of the likeliest action as a share of a guess's [batch][groups]. Decisions of the second half
    count: there rewards rank about as they would if the prompt ended."""
    late = value.shape[1] // 2
    choice = logits[:, SLOTS::GROUP, ACTION0 : ACTION0 + len(ACTIONS)].masked_fill(value.isinf(), -30.0)
    gap, guess = gaps(value)
    share = gap / guess[..., None]
    expected = (choice.softmax(-1) * share).sum(-1)[:, late:].mean()
    second = torch.where(gap > 0, share, torch.inf).min(-1).values.clamp(0, 3)
    surprise = F.cross_entropy(choice.flatten(0, 1), value.argmax(-1).flatten(), reduction="none").view_as(second)
    rewards = logits[:, SLOTS + 1 :: GROUP, REWARD0 : REWARD0 + 2 * RANKS][:, 4:-1].flatten(0, 1)
    seen = F.cross_entropy(rewards, ids[:, SLOTS + 2 :: GROUP][:, 4:-1].flatten() - REWARD0) if len(rewards) else 0.0
    lost = share.gather(-1, choice.argmax(-1, keepdim=True))[..., 0].detach()
    return expected + 0.3 * (surprise * second)[:, late:].mean() + 0.1 * seen, lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--begin", type=Path, help="goes on from weights that --keep kept")
    parser.add_argument("--keep", type=Path, help="keeps the weights, every 500 steps and at the end")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    model = Model(CONFIG)
    if args.begin:
        model.load_state_dict(torch.load(args.begin))
    else:
        prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.98), weight_decay=0.01)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    budget, begin, step, smooth = args.minutes * 60, time.monotonic(), 0, 1.0
    while (spent := time.monotonic() - begin) < budget:
        for group in optimizer.param_groups:
            group["lr"] = args.rate * min(1.0, (step + 1) / 100) * (0.02 + 0.49 * (1 + math.cos(math.pi * spent / budget)))
        drawn, _, _, value = Tasks(rng, BATCH).prompt(int(math.exp(rng.uniform(math.log(2), math.log(MOST_EXAMPLES + 2)))))
        ids = torch.from_numpy(drawn)
        loss, lost = loss_of(model(ids[:, :-1])[0], ids, torch.from_numpy(value))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if lost.shape[1] > 16:
            smooth += max(0.02, 1 / step) * (float(lost[:, 8:16].mean()) - smooth)
        if step % 100 == 0:
            print(f"step {step} {spent:.0f} s, loss {loss.item():.4f}, regret after 8 to 16 examples {smooth:.4f}", flush=True)
        if args.keep and step % 500 == 0:
            torch.save(model.state_dict(), args.keep)
    if args.keep:
        torch.save(model.state_dict(), args.keep)
    export(model, args.out)


if __name__ == "__main__":
    main()
