"""Exports the default model with torch.onnx.export (TorchScript exporter) and checks it in ONNX Runtime.

Usage: export.py --checkpoint FILE --out FILE [--untrained]

Inputs: input_ids, attention_mask, position_ids, past_key_values.N.key/value; outputs: logits,
present.N.key/value, exit_logits_L for each exit after layer L. Batch, sequence and past are dynamic.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

from model import CachedModel, Config, Model

OPSET = 17


def example_inputs(c: Config, batch: int, seq: int, past: int) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    cache = [torch.randn(batch, c.kv_heads, past, c.head_dim) for _ in range(2 * c.layers)]
    ids = torch.randint(0, c.vocab, (batch, seq))
    return (ids, torch.ones(batch, past + seq, dtype=torch.long),
            torch.arange(past, past + seq)[None].repeat(batch, 1), *cache)


def signature(c: Config) -> tuple[list[str], list[str], dict[str, dict[int, str]]]:
    """Input names, output names and dynamic axes."""
    past = [f"past_key_values.{i}.{kind}" for i in range(c.layers) for kind in ("key", "value")]
    present = [name.replace("past_key_values", "present") for name in past]
    exits = [f"exit_logits_{n}" for n in c.exits]
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "past + sequence"},
            "position_ids": {0: "batch", 1: "sequence"}}
    axes |= {name: {0: "batch", 2: "past"} for name in past}
    axes |= {name: {0: "batch", 2: "past + sequence"} for name in present}
    axes |= {name: {0: "batch", 1: "sequence"} for name in ["logits", *exits]}
    return ["input_ids", "attention_mask", "position_ids", *past], ["logits", *present, *exits], axes


def check(model: CachedModel, path: Path, c: Config) -> float:
    """Largest difference from PyTorch over batches, lengths and pasts other than the traced ones."""
    session = onnxruntime.InferenceSession(str(path))
    inputs, _, _ = signature(c)
    worst = 0.0
    for batch, seq, past in ((1, 1, 0), (1, 9, 0), (3, 1, 7), (2, 5, 11)):
        values = example_inputs(c, batch, seq, past)
        values[1][-1, : past // 2] = 0  # left padding of one row
        with torch.no_grad():
            want = model(*values)
        got = session.run(None, dict(zip(inputs, (v.numpy() for v in values))))
        worst = max(worst, *(float(np.abs(g - w.numpy()).max()) for g, w in zip(got, want)))
    return worst


def export(model: Model, path: Path) -> None:
    """Writes the model with its KV cache, checked by ONNX and in ONNX Runtime."""
    cached = CachedModel(model).eval()
    inputs, outputs, axes = signature(model.c)
    torch.onnx.export(cached, example_inputs(model.c, 2, 3, 5), str(path), input_names=inputs,
                      output_names=outputs, dynamic_axes=axes, opset_version=OPSET, dynamo=False)
    onnx.checker.check_model(str(path), full_check=True)
    worst = check(cached, path, model.c)
    print(f"{path}: {path.stat().st_size} bytes, largest difference from PyTorch {worst:.2e}")
    assert worst < 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--untrained", action="store_true", help="export the initial weights: same graph")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = Model(Config())
    if not args.untrained:
        model.load_state_dict(torch.load(args.checkpoint, weights_only=True)["model"])
    export(model, args.out)


if __name__ == "__main__":
    main()
