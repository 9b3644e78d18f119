"""Trains exit heads by distillation: each learns to predict the tokens that the full model gives after the same text.

Usage: train.py --text DIR --out exits.pt [--layers 10,20] [--minutes M] [--begin exits.pt] [--threads N]

The model is frozen. It runs once over DIR/train.jsonl; the stream after each exit's layer, and the likeliest tokens of the full model with their
probabilities, are kept. Adapters begin as the least squares of the full model's last stream, in closed form, and are then trained on cross-entropy
against those tokens, through the model's own head, which stays as it is.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

sys.path.append(str(Path(__file__).parents[1] / "smollm2"))
import export as smollm2  # noqa: E402
from heads import make_exits  # noqa: E402

KEPT, BATCH, PEAK_RATE, WARM_UP = 32, 512, 5e-4, 0.05
Cached = tuple[dict[int, Tensor], Tensor, Tensor, Tensor]


class HeadLoss(torch.autograd.Function):
    """Mean cross-entropy of softmax(x W^T) against sparse probabilities. The gradient of x is made on the way, so that the logits, which
    are most of the memory that moves, live once."""

    @staticmethod
    def forward(context, x: Tensor, weight: Tensor, ids: Tensor, probabilities: Tensor) -> Tensor:
        logits = (x.to(weight.dtype) @ weight.T).float()
        chosen = logits.gather(1, ids)
        total = logits.logsumexp(1, keepdim=True)
        loss = (probabilities * (total - chosen)).sum(1).mean()
        logits.sub_(total).exp_().scatter_add_(1, ids, -probabilities)
        context.save_for_backward((logits.to(weight.dtype) @ weight).float() / len(x))
        return loss

    @staticmethod
    def backward(context, outer: Tensor):
        return outer * context.saved_tensors[0], None, None, None


@torch.inference_mode()
def cache(model: LlamaForCausalLM, path: Path, layers: list[int]) -> Cached:
    """Of each position of the text: the stream after the layers, the last one as normed, and the full model's likeliest tokens. In bf16: half the time, and
    far less noise than there is between one text and another."""
    model = copy.deepcopy(model).to(torch.bfloat16)
    streams: dict[int, list[Tensor]] = {layer: [] for layer in layers}
    last, ids, probabilities = [], [], []
    for line in path.read_text().splitlines():
        out = model.model(torch.tensor([json.loads(line)["tokens"]]), output_hidden_states=True)
        for layer in layers:
            streams[layer].append(out.hidden_states[layer][0].half())
        last.append((out.last_hidden_state[0] / model.model.norm.weight).half())
        top = model.lm_head(out.last_hidden_state[0]).float().softmax(-1).topk(KEPT)
        ids.append(top.indices.int())
        probabilities.append((top.values / top.values.sum(-1, keepdim=True)).half())
    return {layer: torch.cat(rows) for layer, rows in streams.items()}, torch.cat(last), torch.cat(ids), torch.cat(probabilities)


def cached(model: LlamaForCausalLM, text: Path, layers: list[int]) -> Cached:
    """Kept beside the text, so that another training of the same exits begins at once."""
    kept = text / f"cache-{'-'.join(map(str, layers))}.pt"
    if not kept.exists() or kept.stat().st_mtime < (text / "train.jsonl").stat().st_mtime:
        begin = time.monotonic()
        torch.save(cache(model, text / "train.jsonl", layers), kept.with_suffix(".new"))
        kept.with_suffix(".new").rename(kept)
        print(f"one pass over the text in {time.monotonic() - begin:.0f} s", flush=True)
    return torch.load(kept, weights_only=True)


def save(args: argparse.Namespace, layers: list[int], exits: nn.ModuleDict) -> None:
    torch.save({"layers": layers, "wide": args.wide, "exits": exits.state_dict()}, args.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", default="10,20")
    parser.add_argument("--wide", type=int, default=1152, help="width of the part of an adapter that bends")
    parser.add_argument("--minutes", type=float, default=10, help="of training, after the pass over the text")
    parser.add_argument("--begin", type=Path, help="exits of an earlier training to go on from")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    layers = sorted(map(int, args.layers.split(",")))
    model = smollm2.load_model(smollm2.GGUFReader(smollm2.find_gguf()))
    streams, last, ids, probabilities = cached(model, args.text, layers)
    exits = make_exits(model, layers, args.wide)
    if args.begin:
        exits.load_state_dict(torch.load(args.begin, weights_only=True)["exits"])
    else:
        for layer in layers:
            exits[str(layer)].fit(streams[layer], last)
    save(args, layers, exits)
    head = model.lm_head.weight.detach().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(exits.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    begin, step, order = time.monotonic(), 0, torch.randperm(len(ids))
    while (done := (time.monotonic() - begin) / (60 * args.minutes)) < 1:
        at = step * BATCH % (len(ids) - BATCH)
        if step > 0 and at < BATCH:
            order = torch.randperm(len(ids))
        batch = order[at : at + BATCH]
        rate = PEAK_RATE * min(1, done / WARM_UP) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses = [HeadLoss.apply(exits[str(layer)](streams[layer][batch].float()), head, ids[batch].long(), probabilities[batch].float())
                  for layer in layers]
        optimizer.zero_grad()
        sum(losses).backward()
        torch.nn.utils.clip_grad_norm_(exits.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}, {100 * done:.0f} %: " + ", ".join(f"{loss.item():.3f}" for loss in losses), flush=True)
        step += 1
    save(args, layers, exits)
    print(f"{step} steps of {BATCH} positions, {step * BATCH / len(ids):.1f} times over the text")


if __name__ == "__main__":
    main()
