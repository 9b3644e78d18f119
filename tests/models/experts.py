"""Writes small decoders with mixtures of experts: com.microsoft's MoE and QMoE, and what exporters write.

Usage: experts.py [NAME ...]       all, or those named, into experts/NAME beside this file

The decoder is that of forms.py, with a mixture in place of its MLP; qwen3-moe is transformers' model as optimum exports it, with
a NonZero for each expert, and qwen3-moe-nopast is the same without a past; mixtral-batched and gpt-oss-batched are what torch.onnx
exports, where a Gather takes each row's matrix. Each folder gets model.onnx and tokens.json: ONNX Runtime's greedy tokens. Needs
requirements.txt, and qwen3-moe those of ../exporters.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

import forms
from forms import HEADS, IDS, LAYERS, PROMPTS, VOCAB, Graph, Model, Parts, decoder, greedy, ones, own_mask, protocol, usual

EXPERTS, INNER = 4, 16
WIDTH, HEAD = 32, 32 // HEADS  # blocks of 16 quantised weights fit
forms.WIDTH, forms.HEAD = WIDTH, HEAD


def draw(name: str, *shape: int) -> np.ndarray:
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    return np.random.default_rng(seed).normal(0, 0.35, shape).astype(np.float32)


def cast(g: Graph, x: str, half: bool, to: int) -> str:
    return g.op("Cast", x, to=to) if half else x


def rows(g: Graph, x: str, layer: int) -> tuple[str, str]:
    """Tokens [n, WIDTH], and what the router says of them [n, EXPERTS]."""
    flat = g.op("Reshape", x, [-1, WIDTH])
    return flat, g.op("MatMul", flat, g.weight(f"{layer}.router", WIDTH, EXPERTS))


def mixture(half: bool = False, bias: bool = True, **attributes: Any):
    """MoE in f32, or in f16."""
    first = INNER * (2 if attributes.get("swiglu_fusion") else 1)

    def mlp(g: Graph, x: str, layer: int) -> str:
        dtype = np.float16 if half else np.float32

        def weight(name: str, *shape: int) -> str:
            g.constants[f"{layer}.{name}"] = draw(f"{layer}.{name}", *shape).astype(dtype)
            return f"{layer}.{name}"

        flat, router = rows(g, x, layer)
        inputs = [cast(g, flat, half, TensorProto.FLOAT16), cast(g, router, half, TensorProto.FLOAT16),
                  weight("fc1", EXPERTS, first, WIDTH), weight("fc1_bias", EXPERTS, first) if bias else "",
                  weight("fc2", EXPERTS, WIDTH, INNER), weight("fc2_bias", EXPERTS, WIDTH) if bias else ""]
        mixed = g.op("MoE", *inputs, domain="com.microsoft", **attributes)
        return g.op("Reshape", cast(g, mixed, half, TensorProto.FLOAT), g.op("Shape", x))

    return mlp


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of 4 bits two to a byte, the lower half first."""
    return values if bits == 8 else values[..., 0::2] | values[..., 1::2] << 4


def quantised(bits: int, block: int = 0, **attributes: Any):
    """QMoE: symmetric weights of 4 or 8 bits, with a scale for each row or block."""
    first = INNER * (2 if attributes.get("swiglu_fusion") else 1)

    def mlp(g: Graph, x: str, layer: int) -> str:
        def weight(name: str, n: int, k: int) -> list[str]:
            values = draw(f"{layer}.{name}", EXPERTS, n, k // (block or k), block or k)
            most = 2 ** (bits - 1) - 1
            scale = np.abs(values).max(-1, keepdims=True) / most
            whole = (np.clip(np.round(values / scale), -most, most) + most + 1).astype(np.uint8)
            g.constants[f"{layer}.{name}"] = packed(whole.reshape(EXPERTS, n, k), bits)
            g.constants[f"{layer}.{name}_scale"] = scale.reshape([EXPERTS, n, k // block] if block else [EXPERTS, n]).astype(np.float32)
            return [f"{layer}.{name}", f"{layer}.{name}_scale", ""]

        flat, router = rows(g, x, layer)
        sizes = {"block_size": block} if block else {}
        mixed = g.op("QMoE", flat, router, *weight("fc1", first, WIDTH), *weight("fc2", WIDTH, INNER), domain="com.microsoft",
                     expert_weight_bits=bits, **sizes, **attributes)
        return g.op("Reshape", mixed, g.op("Shape", x))

    return mlp


def masked(bits: int, zeros: bool = False):
    """A NonZero of the mask of each expert, and MatMulNBits in blocks of 16: how quantisers leave what exporters write."""

    def mlp(g: Graph, x: str, layer: int) -> str:
        def product(y: str, name: str, n: int, k: int) -> str:
            most = 2 ** (bits - 1) - 1
            values = draw(f"{layer}.{name}", n, k // 16, 16)
            scale = np.abs(values).max(-1, keepdims=True) / most
            middle = np.random.default_rng(n + k).integers(most, most + 3, scale.shape) if zeros else most + 1
            whole = np.clip(np.round(values / scale) + middle, 0, 2**bits - 1).astype(np.uint8)
            g.constants[f"{layer}.{name}"] = packed(whole, bits)
            g.constants[f"{layer}.{name}_scale"] = scale.flatten().astype(np.float32)
            inputs = [f"{layer}.{name}", f"{layer}.{name}_scale"]
            if zeros:
                g.constants[f"{layer}.{name}_zero"] = packed(middle.reshape(n, -1).astype(np.uint8), bits).flatten()
                inputs.append(f"{layer}.{name}_zero")
            return g.op("MatMulNBits", y, *inputs, domain="com.microsoft", N=n, K=k, bits=bits, block_size=16)

        flat, router = rows(g, x, layer)
        values, index = f"{layer}.values", f"{layer}.index"
        g.nodes.append(onnx.helper.make_node("TopK", [router, g.constant(np.array([2]))], [values, index], name=f"/{layer}.top"))
        weights = g.op("Reshape", g.op("Softmax", values, axis=-1), [-1, 1])
        total = g.op("Mul", flat, np.float32(0))
        for e in range(EXPERTS):
            places = g.op("NonZero", g.op("Equal", index, np.int64(e)))
            token, choice = (g.op("Gather", places, np.int64(i), axis=0) for i in range(2))
            y = g.op("Relu", product(g.op("Gather", flat, token, axis=0), f"{e}.fc1", 2 * INNER, WIDTH))
            y = product(y, f"{e}.fc2", WIDTH, 2 * INNER)
            at = g.op("Add", g.op("Mul", token, np.int64(2)), choice)
            y = g.op("Mul", y, g.op("Gather", weights, at, axis=0))
            total = g.op("ScatterND", total, g.op("Unsqueeze", token, [1]), y, reduction="add")
        return g.op("Reshape", total, g.op("Shape", x))

    return mlp


SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1, "k": 2, "normalize_routing_weights": 1}
GPT_OSS = SWIGLU | {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.75}
SILU = {"activation_type": "silu", "k": 2, "normalize_routing_weights": 1}
MODELS = {
    "relu": mixture(activation_type="relu", k=1),
    "gelu": mixture(activation_type="gelu", k=2, bias=False),
    "silu": mixture(**SILU),
    "identity": mixture(activation_type="identity", k=3),
    "swiglu": mixture(**GPT_OSS),
    "silu-f16": mixture(half=True, **SILU),
    "swiglu-f16": mixture(half=True, **GPT_OSS),
    "int4": quantised(4, **SWIGLU),
    "int8": quantised(8, **SILU),
    "int4-blocks": quantised(4, block=16, **SWIGLU),
    "masked-int4": masked(4, zeros=True),
    "masked-int8": masked(8),
}


CACHES = [["batch", HEADS, rows, HEAD] for rows in ("past", "total")]


def write(name: str, path: Path) -> Model:
    g = Graph()
    decoder(g, Parts(own_mask, usual, mlp=MODELS[name]))
    model = Model(*protocol((IDS, ["batch", "total"]), *CACHES), g.nodes, g.initializers(), ones)
    model.save(path)
    return model


def export(path: Path, past: bool) -> Model:
    """qwen3-moe with or without a past, without the names of its nodes' lines of code."""
    import torch
    from optimum.exporters.onnx import main_export
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(1)
    config = Qwen3MoeConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=WIDTH, moe_intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, head_dim=HEAD, num_experts=EXPERTS, num_experts_per_tok=2,
        norm_topk_prob=True, max_position_embeddings=64, initializer_range=0.35)
    with tempfile.TemporaryDirectory() as folder:
        Qwen3MoeForCausalLM(config).save_pretrained(folder)
        main_export(folder, folder, task="text-generation" + "-with-past" * past, device="cpu", do_validation=False)
        exported = onnx.load(Path(folder) / "model.onnx")
    path.parent.mkdir(parents=True, exist_ok=True)
    for node in exported.graph.node:
        node.doc_string = ""
    onnx.save(exported, path)
    inputs, outputs = ({name: kind for name, kind in ports.items() if past or not name.startswith(("past", "present"))}
                       for ports in protocol((IDS, ["batch", "total"]), *CACHES))
    return Model(inputs, outputs, [], [], ones)


SIZES = {"vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_local_experts": EXPERTS,
         "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": HEAD, "num_experts_per_tok": 2,
         "max_position_embeddings": 64, "initializer_range": 0.35}


def batched(path: Path, kind: str, attention: str) -> Model:
    """Matrices [experts, out, in] (mixtral) or [experts, in, out], with biases (gpt_oss)."""
    import export as exporter
    from transformers import AutoConfig, AutoModelForCausalLM

    def build(attention: str) -> Any:
        made = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **SIZES), attn_implementation=attention)
        made.set_experts_implementation("batched_mm")
        return made

    path.parent.mkdir(parents=True, exist_ok=True)
    exporter.VOCAB = VOCAB
    exporter.export(path.parent.name, exporter.Spec(build, attention, 18, dynamo=True), path)
    return Model(*protocol((IDS, ["batch", "total"]), *CACHES), [], [], ones)


EXPORTS = {"qwen3-moe": lambda path: export(path, True), "qwen3-moe-nopast": lambda path: export(path, False),
           "mixtral-batched": lambda path: batched(path, "mixtral", "sdpa"), "gpt-oss-batched": lambda path: batched(path, "gpt_oss", "eager")}


def main(names: list[str]) -> None:
    for name in names or [*MODELS, *EXPORTS]:
        path = Path(__file__).parent / "experts" / name / "model.onnx"
        model = EXPORTS[name](path) if name in EXPORTS else write(name, path)
        lists = {"prompts": PROMPTS, "tokens": [greedy(model, path, list(p)) for p in PROMPTS]}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in lists.items()]
        (path.parent / "tokens.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(name, lists["tokens"])


if __name__ == "__main__":
    main(sys.argv[1:])
