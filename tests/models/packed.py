"""Saves small random models with packed weights as Hugging Face folders, with the tokens that transformers gives for the
weights' values.

Usage: packed.py OUT [NAME ...]       all cases, or those that are named, into folders of OUT
       packed.py --check LLMPART OUT  compiles each folder of OUT and compares its tokens; exit status 1: some differ

The layouts are written out here from their definitions: AutoGPTQ's and AutoAWQ's qlinear modules, compressed-tensors'
pack_quantized and float_quantized, DeepSeek-V3's block scales, bitsandbytes' 4 and 8 bits. Needs torch and transformers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import huggingface
import numpy as np
from huggingface import like_deepseek, like_llama

GROUP = 32
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False}
COMPRESSED = {"quant_method": "compressed-tensors", "quantization_status": "compressed"}
FP8 = {"quant_method": "fp8", "weight_block_size": [32, 32]}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4",
       "bnb_4bit_use_double_quant": False, "bnb_4bit_quant_storage": "uint8"}
CASES: dict[str, dict[str, Any]] = {
    "llama-gptq": GPTQ,
    "llama-gptq8-v2": GPTQ | {"bits": 8, "checkpoint_format": "gptq_v2"},
    "llama-gptq-order": GPTQ | {"desc_act": True},
    "llama-awq": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"},
    "llama-pack": COMPRESSED | {"format": "pack-quantized", "config_groups": {"group_0": {
        "weights": {"num_bits": 4, "group_size": GROUP, "symmetric": True, "type": "int"}}}},
    "llama-fp8": FP8,
    "llama-fp8-channels": COMPRESSED | {"format": "float-quantized", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "strategy": "channel", "symmetric": True, "type": "float"}}}},
    "llama-fp8-ragged": FP8 | {"weight_block_size": [48, 48]},
    "llama-fp8-tensor": {"quant_method": "fp8"},
    "qwen3_moe-fp8": COMPRESSED | {"format": "float-quantized", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "strategy": "block", "block_structure": [16, 48], "symmetric": True, "type": "float"}}}},
    "deepseek_v3-fp8": FP8,
    "llama-nf4": NF4,
    "llama-nf4-nested": NF4 | {"bnb_4bit_use_double_quant": True},
    "llama-bnb8": {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": True},
    "mixtral-gptq": GPTQ,
}
# NAME without what follows its last "-": the configuration
MODELS: dict[str, dict[str, Any]] = {
    "llama": like_llama(hidden_size=64, intermediate_size=64, num_hidden_layers=1),
    "qwen3_moe": like_llama(hidden_size=64, intermediate_size=64, num_hidden_layers=1, head_dim=16, num_experts=4,
                            num_experts_per_tok=2, moe_intermediate_size=40, norm_topk_prob=True),
    "mixtral": like_llama(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_local_experts=3, num_experts_per_tok=2),
    "deepseek_v3": like_deepseek(hidden_size=32, intermediate_size=64, num_hidden_layers=1, q_lora_rank=32, kv_lora_rank=32,
                                 qk_nope_head_dim=8, v_head_dim=16, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1,
                                 num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=0),
}


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Words of 32 bits from codes along the last axis, the first in the low bits."""
    words = codes.astype(np.uint32).reshape(*codes.shape[:-1], -1, 32 // bits)
    shifts = np.arange(32 // bits, dtype=np.uint32) * bits
    return np.bitwise_or.reduce(words << shifts, axis=-1).astype(np.uint32).view(np.int32)


def rounded(values: np.ndarray) -> np.ndarray:
    """What llmpart makes of values whose codes it cannot keep: int8 in groups of 32."""
    groups = values.reshape(values.shape[0], -1, GROUP)
    scale = np.abs(groups).max(-1, keepdims=True) / np.float32(127)
    return (np.rint(groups / scale) * scale).reshape(values.shape).astype(np.float32)


def integers(name: str, settings: dict[str, Any], n: int, k: int, rng: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The parts of a matrix [n][k] in codes, and its values."""
    bits = settings.get("bits", 4)
    codes, groups = rng.integers(0, 1 << bits, (n, k)), k // GROUP
    scale = (rng.uniform(0.5, 1.5, (n, groups)) * 2 / k**0.5 / (1 << bits) * 3).astype(np.float16)
    middle = 1 << (bits - 1)
    zero = rng.integers(middle - 2, middle + 2, (n, groups)) if "pack" not in name else np.full((n, groups), middle)
    index = rng.permutation(np.arange(k) // GROUP) if "order" in name else np.arange(k) // GROUP
    values = (codes - zero[:, index]).astype(np.float32) * scale.astype(np.float32)[:, index]
    if "pack" in name:
        return {"weight_packed": packed(codes, bits), "weight_scale": scale, "weight_shape": np.array([n, k])}, values
    if "awq" in name:
        order = np.arange(n).reshape(-1, 8)[:, AWQ_ORDER].reshape(-1)
        return {"qweight": packed(codes.T[:, order], 4), "qzeros": packed(zero.T[:, order], 4),
                "scales": np.ascontiguousarray(scale.T)}, values
    stored = zero if "v2" in name else zero - 1
    parts = {"qweight": np.ascontiguousarray(packed(codes, bits).T), "qzeros": packed(stored.T, bits),
             "scales": np.ascontiguousarray(scale.T), "g_idx": index.astype(np.int32)}
    return parts, rounded(values) if "order" in name else values


def floats(name: str, key: str, n: int, k: int, rng: Any) -> tuple[dict[str, Any], np.ndarray]:
    import torch

    codes = torch.from_numpy(rng.standard_normal((n, k)).astype(np.float32) * 60).to(torch.float8_e4m3fn)
    rows, columns = CASES[name].get("weight_block_size", (16, 48) if "moe" in name else (n, k) if "tensor" in name else (1, k))
    scale = (rng.uniform(0.5, 1.5, (-(-n // rows), -(-k // columns))) * 2 / k**0.5 / 60).astype(np.float32)
    values = codes.float().numpy() * scale.repeat(rows, 0).repeat(columns, 1)[:n, :k]
    values = torch.from_numpy(values).bfloat16().float().numpy() if "kv_b" in key else values
    if "tensor" in name:
        scale = scale.reshape(1)
    return {"weight": codes, "weight_scale_inv" if "weight_block_size" in CASES[name] else "weight_scale": scale}, values


def bitsandbytes(settings: dict[str, Any], n: int, k: int, rng: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Int8 with a scale for each row, or NF4: llmpart rounds what its codes stand for to multiples of 1/127."""
    import torch

    if settings["load_in_8bit"]:
        codes, most = rng.integers(-127, 128, (n, k)).astype(np.int8), rng.uniform(0.5, 1.5, n).astype(np.float32) * 4 / k**0.5
        parts = {"weight": torch.from_numpy(codes), "SCB": most, "weight_format": torch.tensor(0, dtype=torch.uint8)}
        return parts, codes.astype(np.float32) * (most / np.float32(127))[:, None]
    # QLoRA, appendix E: quantiles of both halves of a normal distribution, scaled to [-1, 1]
    offset = 0.9677083
    high, low = (np.array([NormalDist().inv_cdf(p) for p in np.linspace(offset, 0.5, many)[:-1]]) for many in (9, 8))
    book = np.sort(np.concatenate([high, [0], -low]) / high.max()).astype(np.float32)
    codes = rng.integers(0, 16, n * k).astype(np.uint8)
    most, state = rng.uniform(0.5, 1.5, n * k // 64).astype(np.float32) * 4 / k**0.5, {"quant_type": "nf4", "blocksize": 64, "shape": [n, k]}
    parts = {"weight": (codes[::2] << 4 | codes[1::2])[:, None], "weight.quant_map": book, "weight.absmax": most}
    if settings["bnb_4bit_use_double_quant"]:
        bytes_of = np.linspace(-1, 1, 256, dtype=np.float32)
        stored, factor = rng.integers(0, 256, len(most)).astype(np.uint8), np.full(-(-len(most) // 256), 2 / k**0.5, np.float32)
        most = bytes_of[stored] * factor.repeat(256)[: len(most)] + np.float32(3 / k**0.5)
        parts |= {"weight.absmax": stored, "weight.nested_absmax": factor, "weight.nested_quant_map": bytes_of}
        state |= {"nested_blocksize": 256, "nested_offset": 3 / k**0.5, "nested_dtype": "float32"}
    parts["weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
    scale = (most / np.float32(127)).astype(np.float16).astype(np.float32)
    return parts, (np.rint(book[codes] * 127) * scale.repeat(64)).reshape(n, k).astype(np.float32)


def save(name: str, folder: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    settings, rng = CASES[name], np.random.default_rng(7)
    kind = name.split("-")[0]
    model = huggingface.make(kind, MODELS[kind])
    model.save_pretrained(folder)
    plain = load_file(folder / "model.safetensors")
    tensors, names = dict(plain), [key for key, _ in model.named_parameters() if key in plain]
    for key in names + sorted(key for key in plain if ".experts." in key):  # experts are packed in the model only
        if "_proj" not in key and ".experts." not in key:
            continue
        shape = plain[key].shape
        if "fp8" in name:
            parts, values = floats(name, key, *shape, rng)
        elif settings["quant_method"] == "bitsandbytes":
            parts, values = bitsandbytes(settings, *shape, rng)
        else:
            parts, values = integers(name, settings, *shape, rng)
        plain[key] = torch.from_numpy(values)
        del tensors[key]
        for part, data in parts.items():
            tensors[key.removesuffix("weight") + part] = torch.as_tensor(data).contiguous()
    save_file(plain, folder / "model.safetensors", {"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"quantization_config": settings}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)
    huggingface.write_tokens(model, folder, False)


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        return huggingface.check_all(sys.argv[2], Path(sys.argv[3]))
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or CASES:
        save(name, Path(sys.argv[1]) / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
