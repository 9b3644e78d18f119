"""A small Llama as ONNX Runtime GenAI's model builder writes it: packed weights, fused attention, fused norms.

    python genai.py FOLDER [--bits=4] [--block=32] [--asymmetric] [--table | --tied] [--vocabulary=256]

FOLDER gets model.onnx (com.microsoft: MatMulNBits, GroupQueryAttention with rotary positions inside,
SkipSimplifiedLayerNormalization; with --table also GatherBlockQuantized,
with --tied of the weight of the last product under another shape), tokens.json and a test data set that ONNX Runtime
answered. Weights are random from a fixed seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import oracle

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, FFN, POSITIONS = 256, 64, 2, 4, 2, 160, 128
HEAD = HIDDEN // HEADS
DOMAIN = "com.microsoft"


class Builder:
    def __init__(self, bits: int, block: int, asymmetric: bool) -> None:
        self.bits, self.block, self.asymmetric = bits, block, asymmetric
        self.rng = np.random.default_rng(11)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.tensors.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes) -> str:
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def weight(self, rows: int, columns: int) -> np.ndarray:
        return (self.rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    def quantised(self, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Codes [n][blocks][block], scales [n][blocks], zero points or None: symmetric about the middle code."""
        blocks, top = -(-k // self.block), 2**self.bits - 1
        w = np.zeros((n, blocks * self.block), np.float32)
        w[:, :k] = self.weight(n, k)
        w = w.reshape(n, blocks, self.block)
        if self.asymmetric:
            low, high = np.minimum(w.min(-1), 0), np.maximum(w.max(-1), 0)
            scale = ((high - low) / top).astype(np.float32)
            zero = np.clip(np.rint(-low / scale), 0, top)
        else:
            scale = (np.abs(w).max(-1) / (top // 2)).astype(np.float32)
            zero = np.full(scale.shape, (top + 1) // 2)
        codes = np.clip(np.rint(w / scale[..., None]) + zero[..., None], 0, top).astype(np.uint8)
        return codes, scale, zero.astype(np.uint8) if self.asymmetric else None

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """The last axis in bytes, the first code in the low bits, filled up with zeros."""
        per_byte = 8 // self.bits
        count = -(-codes.shape[-1] // per_byte) * per_byte
        full = np.zeros(codes.shape[:-1] + (count,), np.uint8)
        full[..., : codes.shape[-1]] = codes
        full = full.reshape(*codes.shape[:-1], count // per_byte, per_byte)
        return np.bitwise_or.reduce(full << (np.arange(per_byte, dtype=np.uint8) * self.bits), -1).astype(np.uint8)

    def linear(self, name: str, x: str, n: int, k: int, tied: bool = False) -> str:
        codes, scale, zero = self.quantised(n, k)
        flat = (lambda a: a) if tied else np.ravel
        inputs = [x, self.constant(f"{name}.qweight", self.packed(codes)), self.constant(f"{name}.scales", flat(scale))]
        if zero is not None:
            inputs.append(self.constant(f"{name}.qzeros", flat(self.packed(zero))))
        return self.node("MatMulNBits", inputs, [f"{name}/out"], DOMAIN, K=k, N=n, bits=self.bits, block_size=self.block)

    def norm_weight(self, name: str) -> str:
        return self.constant(name, (1 + 0.1 * self.rng.standard_normal(HIDDEN)).astype(np.float32))


def tied_embedding(b: Builder) -> str:
    shape = b.constant("table_shape", np.array([VOCAB, -(-HIDDEN // b.block) * b.block * b.bits // 8], np.int64))
    data = b.node("Reshape", ["/lm_head.qweight", shape], ["/model/embed_tokens/Reshape/out"])
    zero = ["/lm_head.qzeros"] if b.asymmetric else []
    return b.node("GatherBlockQuantized", [data, "input_ids", "/lm_head.scales", *zero], ["/model/embed_tokens/out"], DOMAIN,
                  bits=b.bits, block_size=b.block, gather_axis=0, quantize_axis=1)


def embedding(b: Builder, table: bool) -> str:
    if not table:
        weight = b.constant("model.embed_tokens.weight", b.rng.standard_normal((VOCAB, HIDDEN)).astype(np.float32))
        return b.node("Gather", [weight, "input_ids"], ["/model/embed_tokens/out"])
    codes, scale, _ = b.quantised(VOCAB, HIDDEN)
    data = b.constant("model.embed_tokens.qweight", b.packed(codes.reshape(VOCAB, -1)))
    return b.node("GatherBlockQuantized", [data, "input_ids", b.constant("model.embed_tokens.scales", 8 * scale)],
                  ["/model/embed_tokens/out"], DOMAIN, bits=b.bits, block_size=b.block, gather_axis=0, quantize_axis=1)


def positions(b: Builder) -> tuple[str, str, str, str]:
    """Lengths from the mask, and the rotary tables, as the builder writes them."""
    one, last = b.constant("one", np.array([1], np.int64)), b.constant("second", np.array(1, np.int64))
    total = b.node("ReduceSum", ["attention_mask", one], ["/model/attn_mask/sum"], keepdims=0)
    less = b.node("Sub", [total, one], ["/model/attn_mask/less"])
    seqlens = b.node("Cast", [less], ["/model/attn_mask/seqlens_k"], to=TensorProto.INT32)
    shape = b.node("Shape", ["attention_mask"], ["/model/attn_mask/shape"])
    length = b.node("Gather", [shape, last], ["/model/attn_mask/length"], axis=0)
    total_length = b.node("Cast", [length], ["/model/attn_mask/total_seq_len"], to=TensorProto.INT32)
    angles = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
    return (seqlens, total_length, b.constant("cos_cache", np.cos(angles).astype(np.float32)),
            b.constant("sin_cache", np.sin(angles).astype(np.float32)))


def layer(b: Builder, index: int, x: str, at: tuple[str, str, str, str]) -> str:
    name = f"/model/layers.{index}"
    q = b.linear(f"{name}/attn/q_proj", x, HIDDEN, HIDDEN)
    k = b.linear(f"{name}/attn/k_proj", x, KV_HEADS * HEAD, HIDDEN)
    v = b.linear(f"{name}/attn/v_proj", x, KV_HEADS * HEAD, HIDDEN)
    past = [f"past_key_values.{index}.{kind}" for kind in ("key", "value")]
    present = [f"present.{index}.{kind}" for kind in ("key", "value")]
    attention = b.node("GroupQueryAttention", [q, k, v, *past, *at], [f"{name}/attn/out", *present], DOMAIN,
                       num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1, rotary_interleaved=0, scale=HEAD**-0.5)
    return b.linear(f"{name}/attn/o_proj", attention, HIDDEN, HIDDEN)


def skip_norm(b: Builder, name: str, x: str, skip: str) -> tuple[str, str]:
    weight = b.norm_weight(f"{name}.weight")
    b.node("SkipSimplifiedLayerNormalization", [x, skip, weight], [f"{name}/out", "", "", f"{name}/sum"], DOMAIN,
           epsilon=1e-5)
    return f"{name}/out", f"{name}/sum"


def mlp(b: Builder, index: int, x: str) -> str:
    name = f"/model/layers.{index}/mlp"
    gate, up = b.linear(f"{name}/gate_proj", x, FFN, HIDDEN), b.linear(f"{name}/up_proj", x, FFN, HIDDEN)
    sigmoid = b.node("Sigmoid", [gate], [f"{name}/act/sigmoid"])
    silu = b.node("Mul", [gate, sigmoid], [f"{name}/act/out"])
    return b.linear(f"{name}/down_proj", b.node("Mul", [silu, up], [f"{name}/product"]), HIDDEN, FFN)


def build(b: Builder, table: bool, tied: bool) -> onnx.ModelProto:
    stream, at = tied_embedding(b) if tied else embedding(b, table), positions(b)
    x = b.node("SimplifiedLayerNormalization", [stream, b.norm_weight("/model/layers.0/input_norm.weight")],
               ["/model/layers.0/input_norm/out"], axis=-1, epsilon=1e-5, stash_type=1)
    for i in range(LAYERS):
        x, stream = skip_norm(b, f"/model/layers.{i}/post_norm", stream, layer(b, i, x, at))
        x, stream = skip_norm(b, f"/model/layers.{i + 1}/input_norm", stream, mlp(b, i, x))
    b.nodes.append(helper.make_node("Identity", [b.linear("/lm_head", x, VOCAB, HIDDEN, tied)], ["logits"], name="logits"))
    def cache(name: str, length: str) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(f"{name}.{i}.{kind}", TensorProto.FLOAT, ["batch_size", KV_HEADS, length, HEAD])
                for i in range(LAYERS) for kind in ("key", "value")]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
              helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
              *cache("past_key_values", "past_sequence_length")]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCAB]),
               *cache("present", "total_sequence_length")]
    graph = helper.make_graph(b.nodes, "main_graph", inputs, outputs, b.tensors)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=7, producer_name="genai.py")


def main() -> None:
    global VOCAB
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--asymmetric", action="store_true", help="zero points")
    parser.add_argument("--table", action="store_true", help="quantise the embedding too")
    parser.add_argument("--tied", action="store_true", help="the embedding is the weight of the last product")
    parser.add_argument("--vocabulary", type=int, default=VOCAB)
    args = parser.parse_args()
    VOCAB = args.vocabulary
    args.folder.mkdir(parents=True, exist_ok=True)
    path = args.folder / "model.onnx"
    onnx.save(build(Builder(args.bits, args.block, args.asymmetric), args.table, args.tied), path)
    oracle.write_tokens(path, args.folder)
    rng = np.random.default_rng(3)
    past = [0.3 * rng.standard_normal((1, KV_HEADS, 5, HEAD)).astype(np.float32) for _ in range(2 * LAYERS)]
    ids = rng.integers(0, VOCAB, (1, 4))
    oracle.write_test_data(path, args.folder / "test_data_set_0", [ids, np.ones((1, 9), np.int64), *past])


if __name__ == "__main__":
    main()
