"""Makes the small models of this folder: other architectures and exporters than the default model's.

Usage: export.py [NAME ...]                             all models, or those named, into their folders
       export.py --oracle MODEL.onnx --out FOLDER       only tokens.json, for a model made elsewhere

Weights are random, seeded, and drawn wide so that greedy tokens vary and no two logits are close.
Needs the packages of requirements.txt. NAME/ gets model.onnx, test_data_set_0/ (batch 2, a past of 4
tokens where the model takes one) and tokens.json: greedy tokens of ONNX Runtime for three prompts.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import oracle

VOCAB = 331
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Spec:
    """`inputs` beyond input_ids; a `past` means KV inputs and outputs."""

    build: Callable[[str], nn.Module]
    attention: str
    opset: int
    inputs: tuple[str, ...] = ("attention_mask", "position_ids")
    past: bool = True
    dynamo: bool = False


def gpt2(attention: str) -> nn.Module:
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=42, n_layer=2, n_head=3, n_positions=128, bos_token_id=0,
                                      eos_token_id=0, initializer_range=0.25, attn_implementation=attention))


def llama(attention: str) -> nn.Module:
    """Head size is not hidden size over heads, and no size is a multiple of a SIMD register."""
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, hidden_size=36, intermediate_size=100, num_hidden_layers=3,
                                        num_attention_heads=6, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False,
                                        max_position_embeddings=256, initializer_range=0.25, attn_implementation=attention))


SPECS = {
    "gpt2": Spec(gpt2, "eager", 14),
    "gpt2-nopast": Spec(gpt2, "sdpa", 17, inputs=(), past=False),
    "llama": Spec(llama, "eager", 14),
    "llama-dynamo": Spec(llama, "sdpa", 18, dynamo=True),
    "llama-nopast": Spec(llama, "sdpa", 17, inputs=("attention_mask",), past=False),
}


class Wrapped(nn.Module):
    """Flat tensors in and out instead of Hugging Face's cache object."""

    def __init__(self, model: nn.Module, spec: Spec):
        super().__init__()
        self.model, self.spec = model, spec

    def forward(self, input_ids: Tensor, *rest: Tensor):
        # Without a mask Hugging Face looks for packed sequences, with operators that ONNX lacks.
        named = {"attention_mask": torch.ones_like(input_ids)} | dict(zip(self.spec.inputs, rest))
        past = rest[len(self.spec.inputs) :]
        cache = DynamicCache(list(zip(past[::2], past[1::2]))) if self.spec.past else None
        out = self.model(input_ids=input_ids, past_key_values=cache, use_cache=self.spec.past, **named)
        if not self.spec.past:
            return out.logits
        return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))


class Plain(nn.Module):
    """Not a transformer: nothing here raises to a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(24, 40) * 0.3)
        self.second = nn.Parameter(torch.randn(40, 24) * 0.3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mixed = torch.softmax(x.transpose(1, 2) @ x, dim=-1)
        y = torch.tanh(x @ mixed @ self.first) @ self.second
        y = torch.where(y > 0, y, 0.1 * y) - y.mean(dim=-1, keepdim=True)
        return y, y.amax(dim=1)


def make(build: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(11)
    model = build().eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:  # norms and biases: an exporter shares equal ones, and a test could not tell them apart
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def cache_shape(model: nn.Module) -> tuple[int, int, int]:
    """Layers, KV heads, head size."""
    c = model.config
    heads = getattr(c, "num_key_value_heads", c.num_attention_heads)
    return c.num_hidden_layers, heads, getattr(c, "head_dim", c.hidden_size // c.num_attention_heads)


def example(model: nn.Module, spec: Spec, batch: int, new: int, past: int) -> list[Tensor]:
    torch.manual_seed(12)
    layers, heads, dim = cache_shape(model)
    past = past if spec.past else 0
    every = {"attention_mask": torch.ones(batch, past + new, dtype=torch.long),
             "position_ids": torch.arange(past, past + new)[None].repeat(batch, 1)}
    cache = [torch.randn(batch, heads, past, dim) for _ in range(2 * layers)] if spec.past else []
    return [torch.randint(0, VOCAB, (batch, new)), *(every[name] for name in spec.inputs), *cache]


def dynamic_axes(names: list[str]) -> dict[str, dict[int, str]]:
    axes = {}
    for name in names:
        if name.startswith(("past", "present")):
            axes[name] = {0: "batch", 2: "past" if name.startswith("past") else "total"}
        else:
            axes[name] = {0: "batch", 1: "total" if name == "attention_mask" else "sequence"}
    return axes


def export(name: str, spec: Spec, path: Path) -> list[Tensor]:
    """Writes the model and returns inputs that differ in every dynamic size from those traced."""
    model = make(lambda: spec.build(spec.attention))
    past = [f"past_key_values.{i}.{kind}" for i in range(cache_shape(model)[0]) for kind in ("key", "value")] if spec.past else []
    inputs = ["input_ids", *spec.inputs, *past]
    outputs = ["logits", *(n.replace("past_key_values", "present") for n in past)]
    values, axes = example(model, spec, 3, 5, 7), dynamic_axes(inputs + outputs)
    if spec.dynamo:
        shapes = [{axis: torch.export.Dim.DYNAMIC for axis in axes[n]} for n in inputs]
        settings = {"dynamo": True, "dynamic_shapes": (shapes[0], tuple(shapes[1:])), "external_data": False}
    else:
        settings = {"dynamo": False, "dynamic_axes": axes}
    wrapped = Wrapped(model, spec).eval()
    torch.onnx.export(wrapped, tuple(values), str(path), input_names=inputs, output_names=outputs,
                      opset_version=spec.opset, **settings)
    strip(path)
    checked = example(model, spec, 2, 3, 4)
    want = wrapped(*checked)
    want = (want[0] if spec.past else want).numpy()
    got = oracle.Oracle(path).session.run(["logits"], dict(zip(inputs, (v.numpy() for v in checked))))[0]
    assert np.allclose(got, want, rtol=1e-3, atol=1e-4), f"{name}: {np.abs(got - want).max()}"
    return checked


def strip(path: Path) -> None:
    """The dynamo exporter leaves stack traces with this machine's paths; they are no part of the model."""
    model = onnx.load(path)
    for item in [model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output,
                 *model.graph.initializer]:
        item.ClearField("metadata_props")
        item.ClearField("doc_string")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def write_plain(folder: Path) -> None:
    model = make(Plain)
    torch.onnx.export(model, (torch.randn(3, 5, 24),), str(folder / "model.onnx"), input_names=["x"], output_names=["y", "peak"],
                      dynamic_axes={"x": {0: "batch", 1: "sequence"}, "y": {0: "batch", 1: "sequence"}, "peak": {0: "batch"}},
                      opset_version=17, dynamo=False)
    oracle.write_test_data(folder / "model.onnx", folder / "test_data_set_0", [torch.randn(2, 4, 24).numpy()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SPECS)}, plain-mlp")
    parser.add_argument("--oracle", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if args.oracle:
        oracle.write_tokens(args.oracle, args.out)
        return
    for name in args.names or [*SPECS, "plain-mlp"]:
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        if name == "plain-mlp":
            write_plain(folder)
            continue
        checked = export(name, SPECS[name], folder / "model.onnx")
        oracle.write_test_data(folder / "model.onnx", folder / "test_data_set_0", [v.numpy() for v in checked])
        oracle.write_tokens(folder / "model.onnx", folder)


if __name__ == "__main__":
    main()
