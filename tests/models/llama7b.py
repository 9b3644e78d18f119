"""Writes the ONNX of a Llama of any size, node by node, with all weights in an external file.

Usage: llama7b.py --out DIR                      LLaMA2-7B: 32 layers, f16, weights.bin absent
       llama7b.py --out DIR --shape m            the 110M-parameter f32 model of the benchmarks, weights.bin random
       llama7b.py --out DIR --layers 2 --hidden 256 ... --weights absent|sparse|random

The nodes are those that torch.onnx.export leaves of Hugging Face's Llama: decomposed RMSNorm in f32, rotary by
Slice, Neg and Concat, KV cache by Concat, an additive mask, transposed weights. A sparse weights.bin has the
right size and takes no room on the disk.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_writer
from onnx_writer import BOOL, FLOAT, HALF, INT64

ALIGN = 4096


@dataclass(frozen=True)
class Shape:
    layers: int = 32
    hidden: int = 4096
    ffn: int = 11008
    heads: int = 32
    kv_heads: int = 32
    head_dim: int = 128
    vocab: int = 32000
    dtype: str = "f16"


SHAPES = {"7b": Shape(), "m": Shape(12, 768, 2048, 12, 12, 64, 32000, "f32")}


class Writer:
    """Nodes, named after their first output, and weights laid out one after another in weights.bin."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self.type = HALF if shape.dtype == "f16" else FLOAT
        self.nodes: list[bytes] = []
        self.initializers: list[bytes] = []
        self.weights: list[tuple[str, tuple[int, ...], int]] = []  # name, dims, offset
        self.end = 0

    def op(self, kind: str, name: str, *inputs: str, **attributes) -> str:
        self.nodes.append(onnx_writer.node(kind, inputs, name, **attributes))
        return name

    def const(self, name: str, value) -> str:
        self.initializers.append(onnx_writer.tensor(name, value))
        return name

    def weight(self, name: str, *dims: int) -> str:
        size = math.prod(dims) * (2 if self.type == HALF else 4)
        self.initializers.append(onnx_writer.external_tensor(name, self.type, dims, "weights.bin", self.end, size))
        self.weights.append((name, dims, self.end))
        self.end += -(-size // ALIGN) * ALIGN
        return name

    def linear(self, name: str, x: str, rows: int, columns: int) -> str:
        return self.op("MatMul", f"{name}/MatMul", x, self.weight(f"{name}.weight", rows, columns))

    def norm(self, name: str, x: str) -> str:
        wide = self.op("Cast", f"{name}/Cast", x, to=FLOAT)
        square = self.op("Pow", f"{name}/Pow", wide, "two")
        mean = self.op("ReduceMean", f"{name}/ReduceMean", square, axes=[-1], keepdims=1)
        root = self.op("Sqrt", f"{name}/Sqrt", self.op("Add", f"{name}/Add", mean, "eps"))
        scaled = self.op("Mul", f"{name}/Mul", wide, self.op("Div", f"{name}/Div", "one", root))
        narrow = self.op("Cast", f"{name}/Cast_1", scaled, to=self.type)
        return self.op("Mul", f"{name}/Mul_1", self.weight(f"{name}.weight", self.shape.hidden), narrow)

    def rotate(self, name: str, x: str) -> str:
        low = self.op("Slice", f"{name}/Slice", x, "zero_1d", "half_1d", "last_axis")
        high = self.op("Slice", f"{name}/Slice_1", x, "half_1d", "max_1d", "last_axis")
        turned = self.op("Concat", f"{name}/Concat", self.op("Neg", f"{name}/Neg", high), low, axis=-1)
        return self.op("Add", f"{name}/Add", self.op("Mul", f"{name}/Mul", x, "cos"), self.op("Mul", f"{name}/Mul_1", turned, "sin"))

    def repeat(self, name: str, x: str) -> str:
        """[batch][kv head][total][dim] -> [batch][head][total][dim]."""
        if self.shape.kv_heads == self.shape.heads:
            return x
        wide = self.op("Expand", f"{name}/Expand", self.op("Unsqueeze", f"{name}/Unsqueeze", x, "two_1d"), "repeat_shape")
        return self.op("Reshape", f"{name}/Reshape", wide, "repeated_shape")


def prologue(w: Writer) -> str:
    """Constants, the mask, the rotary tables and the embedding; returns the embedded tokens."""
    s = w.shape
    np_type = np.float16 if w.type == HALF else np.float32
    for name, value in (("two", np.float32(2)), ("one", np.float32(1)), ("eps", np.float32(1e-5)), ("zero", np.int64(0)), ("step", np.int64(1)),
                        ("one_i", np.int64(1)), ("two_i", np.int64(2)), ("shown", np_type(0)), ("hidden", np.finfo(np_type).min),
                        ("scale", np_type(s.head_dim**-0.5))):
        w.const(name, value)
    for name, values in (("zero_1d", [0]), ("half_1d", [s.head_dim // 2]), ("max_1d", [2**63 - 1]), ("last_axis", [-1]), ("one_1d", [1]),
                         ("axes_01", [0, 1]), ("axes_12", [1, 2]), ("axes_13", [1, 3]), ("q_shape", [0, 0, s.heads, s.head_dim]),
                         ("kv_shape", [0, 0, s.kv_heads, s.head_dim]), ("merged_shape", [0, 0, s.heads * s.head_dim])):
        w.const(name, np.array(values, np.int64))
    if s.kv_heads != s.heads:
        for name, values in (("two_1d", [2]), ("repeat_shape", [1, 1, s.heads // s.kv_heads, 1, 1]),
                             ("repeated_shape", [0, s.heads, -1, s.head_dim])):
            w.const(name, np.array(values, np.int64))
    inv_freq = 10000.0 ** -(np.arange(0, s.head_dim, 2) / s.head_dim)
    w.const("inv_freq", inv_freq.astype(np.float32).reshape(1, 1, 1, -1))
    new = w.op("Gather", "/new", w.op("Shape", "/Shape", "input_ids"), "one_i")
    past = w.op("Gather", "/past", w.op("Shape", "/Shape_1", "past_key_values.0.key"), "two_i")
    total = w.op("Add", "/total", past, new)
    query = w.op("Unsqueeze", "/query", w.op("Range", "/Range", past, total, "step"), "one_1d")
    key = w.op("Unsqueeze", "/key", w.op("Range", "/Range_1", "zero", total, "step"), "zero_1d")
    causal = w.op("Unsqueeze", "/causal", w.op("LessOrEqual", "/LessOrEqual", key, query), "axes_01")
    kept = w.op("Unsqueeze", "/kept", w.op("Cast", "/Cast", "attention_mask", to=BOOL), "axes_12")
    w.op("Where", "mask", w.op("And", "/And", causal, kept), "shown", "hidden")
    position = w.op("Cast", "/Cast_1", w.op("Unsqueeze", "/position", "position_ids", "axes_13"), to=FLOAT)
    angle = w.op("Mul", "/angle", position, "inv_freq")
    angles = w.op("Concat", "/angles", angle, angle, axis=-1)
    w.op("Cast", "cos", w.op("Cos", "/Cos", angles), to=w.type)
    w.op("Cast", "sin", w.op("Sin", "/Sin", angles), to=w.type)
    return w.op("Gather", "/model/embed_tokens/Gather", w.weight("model.embed_tokens.weight", s.vocab, s.hidden), "input_ids")


def attention(w: Writer, i: int, x: str) -> str:
    s, name = w.shape, f"/model/layers.{i}/self_attn"

    def heads(part: str, count: int, shape: str) -> str:
        flat = w.linear(f"{name}/{part}_proj", x, s.hidden, count * s.head_dim)
        return w.op("Transpose", f"{name}/{part}/Transpose", w.op("Reshape", f"{name}/{part}/Reshape", flat, shape), perm=[0, 2, 1, 3])

    q = w.rotate(f"{name}/q", heads("q", s.heads, "q_shape"))
    k = w.rotate(f"{name}/k", heads("k", s.kv_heads, "kv_shape"))
    v = heads("v", s.kv_heads, "kv_shape")
    k = w.op("Concat", f"present.{i}.key", f"past_key_values.{i}.key", k, axis=2)
    v = w.op("Concat", f"present.{i}.value", f"past_key_values.{i}.value", v, axis=2)
    keys = w.op("Transpose", f"{name}/Transpose", w.repeat(f"{name}/k/repeat", k), perm=[0, 1, 3, 2])
    scores = w.op("Mul", f"{name}/Mul", w.op("MatMul", f"{name}/MatMul", q, keys), "scale")
    masked = w.op("Cast", f"{name}/Cast", w.op("Add", f"{name}/Add", scores, "mask"), to=FLOAT)
    weights = w.op("Cast", f"{name}/Cast_1", w.op("Softmax", f"{name}/Softmax", masked, axis=-1), to=w.type)
    mixed = w.op("MatMul", f"{name}/MatMul_1", weights, w.repeat(f"{name}/v/repeat", v))
    merged = w.op("Reshape", f"{name}/Reshape", w.op("Transpose", f"{name}/Transpose_1", mixed, perm=[0, 2, 1, 3]), "merged_shape")
    return w.linear(f"{name}/o_proj", merged, s.heads * s.head_dim, s.hidden)


def mlp(w: Writer, i: int, x: str) -> str:
    s, name = w.shape, f"/model/layers.{i}/mlp"
    gate = w.linear(f"{name}/gate_proj", x, s.hidden, s.ffn)
    silu = w.op("Mul", f"{name}/act_fn/Mul", gate, w.op("Sigmoid", f"{name}/act_fn/Sigmoid", gate))
    return w.linear(f"{name}/down_proj", w.op("Mul", f"{name}/Mul", silu, w.linear(f"{name}/up_proj", x, s.hidden, s.ffn)), s.ffn, s.hidden)


def build(w: Writer) -> bytes:
    s = w.shape
    x = prologue(w)
    for i in range(s.layers):
        name = f"/model/layers.{i}"
        x = w.op("Add", f"{name}/Add", x, attention(w, i, w.norm(f"{name}/input_layernorm", x)))
        x = w.op("Add", f"{name}/Add_1", x, mlp(w, i, w.norm(f"{name}/post_attention_layernorm", x)))
    w.op("MatMul", "logits", w.norm("/model/norm", x), w.weight("lm_head.weight", s.hidden, s.vocab))
    cache = [f"{i}.{kind}" for i in range(s.layers) for kind in ("key", "value")]
    value = onnx_writer.value_info
    inputs = [value("input_ids", INT64, ["batch", "sequence"]), value("attention_mask", INT64, ["batch", "total"]),
              value("position_ids", INT64, ["batch", "sequence"])]
    inputs += [value(f"past_key_values.{name}", w.type, ["batch", s.kv_heads, "past", s.head_dim]) for name in cache]
    outputs = [value("logits", w.type, ["batch", "sequence", s.vocab])]
    outputs += [value(f"present.{name}", w.type, ["batch", s.kv_heads, "total", s.head_dim]) for name in cache]
    return onnx_writer.model(w.nodes, inputs, outputs, w.initializers, 17, "llama7b.py")


def write_weights(w: Writer, path: Path, random: bool) -> None:
    """Random weights keep the size of the activations: one over the root of the rows. The head equals the embedding."""
    with open(path, "wb") as file:
        file.truncate(w.end)
        if not random:
            return
        rng = np.random.default_rng(1)
        for name, dims, offset in w.weights:
            if name == "lm_head.weight":
                value = embedding.T
            elif len(dims) == 1:
                value = 1 + 0.05 * rng.standard_normal(dims, np.float32)
            else:
                value = rng.standard_normal(dims, np.float32) * np.float32(w.shape.hidden**-0.5 if "embed" in name else dims[0] ** -0.5)
            if "embed" in name:
                embedding = value
            file.seek(offset)
            file.write(np.ascontiguousarray(value, np.float16 if w.type == HALF else np.float32).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--weights", choices=("absent", "sparse", "random"), help="default: absent for 7b, random for m")
    for field in ("layers", "hidden", "ffn", "heads", "kv-heads", "head-dim", "vocab"):
        parser.add_argument(f"--{field}", type=int)
    parser.add_argument("--dtype", choices=("f16", "f32"))
    args = parser.parse_args()
    base = SHAPES[args.shape]
    chosen = {key: getattr(args, key) for key in base.__dict__ if getattr(args, key) is not None}
    writer = Writer(Shape(**base.__dict__ | chosen))
    model = build(writer)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "model.onnx").write_bytes(model)
    weights = args.weights or ("absent" if args.shape == "7b" else "random")
    if weights != "absent":
        write_weights(writer, args.out / "weights.bin", weights == "random")
    print(f"{args.out}/model.onnx: {len(writer.nodes)} nodes, weights.bin {weights}, {writer.end} bytes")


if __name__ == "__main__":
    main()
