"""Saves small random models of many architectures as GGUF files, with the tokens that transformers gives.

Usage: gguf_files.py OUT [NAME ...]         all cases, or those that are named, into folders of OUT
       gguf_files.py --check LLMPART OUT    compiles each folder of OUT and compares its tokens; exit status 1: some differ

OUT/NAME/ gets NAME.gguf and tokens.json, as huggingface.py writes them. The weights are named and laid out as llama.cpp's
convert_hf_to_gguf.py does. Needs torch, transformers and gguf.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

import huggingface
from huggingface import LLAMA3, LONGROPE, like_deepseek, like_delta, like_falcon, like_granite_hybrid, like_lfm2, like_llama, like_nemotron

# The architecture in GGUF, then model type, configuration and type of the weights as in huggingface.CASES
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
MSCALE = YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}


def like_next(**more: Any) -> dict[str, Any]:
    return like_delta(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=10) | more


CASES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "llama": ("llama", "llama", like_llama(rope_scaling=LLAMA3), "float32"),
    "llama-parts": ("llama", "llama", like_llama(rope_scaling=LLAMA3), "parts"),
    "llama-blocks": ("llama", "llama", like_llama(hidden_size=64, intermediate_size=96, num_hidden_layers=1), "blocks"),
    "mixtral": ("llama", "mixtral", like_llama(num_local_experts=5, num_experts_per_tok=2), "float32"),
    "qwen2moe": ("qwen2moe", "qwen2_moe", like_llama(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20,
                                                     shared_expert_intermediate_size=28), "float32"),
    "qwen3moe-blocks": ("qwen3moe", "qwen3_moe", like_llama(hidden_size=64, head_dim=16, num_hidden_layers=1, num_experts=4,
                                                            num_experts_per_tok=2, moe_intermediate_size=32,
                                                            norm_topk_prob=True), "blocks"),
    "gpt-oss": ("gpt-oss", "gpt_oss", like_llama(num_hidden_layers=1, hidden_size=32, intermediate_size=32, head_dim=8, num_local_experts=4,
                                                 num_experts_per_tok=2, sliding_window=5, attention_bias=True,
                                                 rope_parameters=YARN | {"rope_theta": 150000.0}), "mxfp4"),
    "olmoe": ("olmoe", "olmoe", like_llama(num_experts=6, num_experts_per_tok=3, intermediate_size=20), "float32"),
    "llama-k-blocks": ("llama", "llama", like_llama(hidden_size=256, intermediate_size=256, num_hidden_layers=1,
                                                    num_attention_heads=8, num_key_value_heads=2), "k-blocks"),
    # as the converter writes them today, and as it did before 2025: without groups, and keys and values in one matrix
    "deepseek3": ("deepseek2", "deepseek_v3", like_deepseek(n_group=4, topk_group=2, num_experts_per_tok=3, first_k_dense_replace=1,
                                                            rope_scaling=MSCALE), "float32"),
    "deepseek2-old": ("deepseek2", "deepseek_v2", like_deepseek(
        hidden_size=32, intermediate_size=64, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=None, kv_lora_rank=32,
        n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=32, num_experts_per_tok=2, qk_nope_head_dim=8, v_head_dim=16,
        routed_scaling_factor=2.0, first_k_dense_replace=1), "blocks"),
    "deepseek3-blocks": ("deepseek2", "deepseek_v3", like_deepseek(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=32,
        kv_lora_rank=32, qk_nope_head_dim=32, v_head_dim=32, n_routed_experts=4, n_shared_experts=1, moe_intermediate_size=32,
        n_group=1, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=0, norm_topk_prob=True), "blocks"),
    "qwen2-yarn": ("qwen2", "qwen2", like_llama(rope_scaling=YARN), "float32"),
    "qwen3": ("qwen3", "qwen3", like_llama(head_dim=8, num_attention_heads=6), "float16"),
    "gemma": ("gemma", "gemma", like_llama(head_dim=8, num_key_value_heads=1), "float32"),
    "gemma2": ("gemma2", "gemma2", like_llama(head_dim=8, sliding_window=6, query_pre_attn_scalar=8,
                                              attn_logit_softcapping=4.0, final_logit_softcapping=9.0), "float32"),
    "gemma3": ("gemma3", "gemma3_text", like_llama(head_dim=8, sliding_window=6, query_pre_attn_scalar=8, num_hidden_layers=6,
                                                   rope_theta=1e6), "float32"),
    "olmo": ("olmo", "olmo", like_llama(clip_qkv=0.02), "float32"),
    "olmo2": ("olmo2", "olmo2", like_llama(), "float32"),
    "granite": ("granite", "granite", like_llama(embedding_multiplier=6.0, attention_multiplier=0.3, residual_multiplier=0.4,
                                                 logits_scaling=4.0), "float32"),
    "smollm3": ("smollm3", "smollm3", like_llama(num_hidden_layers=4), "float32"),
    "stablelm": ("stablelm", "stablelm", like_llama(hidden_size=32, partial_rotary_factor=0.25), "float32"),
    "stablelm-parallel": ("stablelm", "stablelm", like_llama(hidden_size=32, use_parallel_residual=True), "float32"),
    "starcoder2": ("starcoder2", "starcoder2", like_llama(sliding_window=6), "float32"),
    "gpt2": ("gpt2", "gpt2", {"n_embd": 25, "n_layer": 2, "n_head": 5, "n_positions": 64}, "float32"),
    "phi2": ("phi2", "phi", like_llama(num_key_value_heads=4, hidden_size=32), "float32"),
    "phi3": ("phi3", "phi3", like_llama(sliding_window=7, original_max_position_embeddings=128), "float32"),
    "phi3-long": ("phi3", "phi3", like_llama(max_position_embeddings=64, original_max_position_embeddings=8,
                                             rope_scaling=LONGROPE), "float32"),
    "granitemoe": ("granitemoe", "granitemoe", like_llama(num_local_experts=5, num_experts_per_tok=2, embedding_multiplier=6.0,
                                                          attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0),
                   "float32"),
    "granitehybrid": ("granitehybrid", "granitemoehybrid", like_granite_hybrid(mamba_n_groups=2), "float32"),
    "granitehybrid-f16": ("granitehybrid", "granitemoehybrid", like_granite_hybrid(num_local_experts=0, intermediate_size=28,
                                                                                   mamba_d_conv=3), "float16"),
    # a part of heads is rotated otherwise in llama.cpp
    "bamba": ("granitehybrid", "bamba", like_llama(num_hidden_layers=3, attn_layer_indices=[1], mamba_n_heads=6, mamba_d_state=12,
                                                   rope_parameters={"rope_type": "default", "rope_theta": 500.0,
                                                                    "partial_rotary_factor": 1.0}), "float32"),
    # llama.cpp has the norm after the gate
    "falcon-h1": ("falcon-h1", "falcon_h1", like_falcon(), "float32"),
    "falcon-h1-norm": ("falcon-h1", "falcon_h1", like_falcon(num_hidden_layers=1, mamba_rms_norm=True, mamba_norm_before_gate=False),
                       "float32"),
    "nemotron_h": ("nemotron_h", "nemotron_h", like_nemotron("linear_attention", "mlp", "full_attention", "linear_attention"),
                   "float16"),
    "nemotron_h_moe": ("nemotron_h_moe", "nemotron_h", like_nemotron(
        "linear_attention", "moe", "full_attention", n_group=3, topk_group=2, norm_topk_prob=False, routed_scaling_factor=1.5),
                       "float32"),
    "nemotron_h_moe-blocks": ("nemotron_h_moe", "nemotron_h", like_nemotron(
        "moe", "linear_attention", "full_attention", hidden_size=32, mamba_num_heads=4, mamba_head_dim=8, moe_latent_size=32,
        n_routed_experts=4, moe_intermediate_size=32, moe_shared_expert_intermediate_size=64), "blocks"),
    "lfm2": ("lfm2", "lfm2", like_lfm2(num_hidden_layers=4, full_attn_idxs=[1, 2], conv_L_cache=4), "float32"),
    "lfm2-blocks": ("lfm2", "lfm2", like_lfm2(hidden_size=64, intermediate_size=96, num_hidden_layers=2, full_attn_idxs=[1],
                                              block_auto_adjust_ff_dim=False), "blocks"),
    "lfm2moe": ("lfm2moe", "lfm2_moe", like_lfm2(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12, num_dense_layers=1,
                                                 layer_types=["conv", "full_attention", "conv"]), "float32"),
    # queries, keys and values of delta nets apart from gates, and as the converter first wrote them
    "qwen3next": ("qwen3next", "qwen3_next", like_next(num_hidden_layers=3, full_attention_interval=2), "float32"),
    "qwen3next-packed": ("qwen3next", "qwen3_next", like_next(num_hidden_layers=4), "float16"),
    "qwen35": ("qwen35", "qwen3_5_text", like_delta(num_hidden_layers=4, tie_word_embeddings=True, linear_num_value_heads=6),
               "float32"),
    "qwen35moe": ("qwen35moe", "qwen3_5_moe_text", {k: v for k, v in like_next(num_hidden_layers=2, full_attention_interval=2).items()
                                                    if k != "intermediate_size"}, "float32"),
}
# Rotated pairs are neighbours in these architectures, half a head apart in transformers.
PERMUTED = ("llama", "olmo", "granite", "granitemoe", "granitehybrid", "smollm3")
PREDICTORS = 1  # layers that the files of these have beside the model's
PREDICTING = ("qwen35", "qwen35moe", "nemotron_h_moe")
KEPT = (".bias", "conv1d.weight", "shortconv.conv.weight", "ssm_a", "ssm_d", "ssm_norm.weight")  # in f32
BLOCKS = ("Q8_0", "Q5_0", "Q4_0", "Q5_1", "Q4_1", "BF16", "F16")
# Blocks that the package reads but does not make, and the places of their f16.
K_BLOCKS = {"Q6_K": (208,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q3_K": (108,), "Q2_K": (80, 82), "IQ4_XS": (0,), "IQ4_NL": (0,)}


def k_blocks(kind: Any, shape: tuple[int, ...], seed: int, spread: float = 0.08) -> np.ndarray:
    """Blocks of random bytes whose values have this standard deviation."""
    size, count = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(seed).integers(0, 256, (shape[0] * shape[1] // size, count), np.uint8)

    def with_unit(unit: float) -> np.ndarray:
        for at in K_BLOCKS[kind.name]:
            blocks[:, at : at + 2] = np.frombuffer(np.float16(unit).tobytes(), np.uint8)
        return blocks.reshape(shape[0], -1)

    return with_unit(spread / float(gguf.quants.dequantize(with_unit(1), kind).std()))


def packed(data: np.ndarray, number: int, dtype: str) -> tuple[Any, np.ndarray]:
    """Matrix `number` of a model, and the type of its blocks."""
    if dtype == "k-blocks":
        kind = gguf.GGMLQuantizationType[list(K_BLOCKS)[number % len(K_BLOCKS)]]
        return kind, k_blocks(kind, data.shape, number)
    experts = dtype == "mxfp4" and data.ndim == 3
    kind = gguf.GGMLQuantizationType["MXFP4" if experts else BLOCKS[number % len(BLOCKS)] if dtype == "blocks" else "F16"]
    return kind, gguf.quants.quantize(data, kind)


def attends(config: Any) -> list[bool]:
    """Which layers have keys and values."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ["attention"]
    return [kind in ("attention", "full_attention") for kind in kinds]


def add_states(file: gguf.GGUFWriter, config: Any) -> None:
    """The keys of layers without attention."""
    kind = config.model_type
    if kind.startswith("lfm2"):
        file.add_shortconv_l_cache(config.conv_L_cache)
    elif kind in ("granitemoehybrid", "bamba"):
        file.add_ssm_conv_kernel(config.mamba_d_conv)
        file.add_ssm_state_size(config.mamba_d_state)
        file.add_ssm_group_count(config.mamba_n_groups)
        file.add_ssm_inner_size(config.mamba_expand * config.hidden_size)
        file.add_ssm_time_step_rank(config.mamba_n_heads)
        file.add_rope_scaling_finetuned(kind == "bamba")
    elif kind == "falcon_h1":
        file.add_ssm_conv_kernel(config.mamba_d_conv)
        file.add_ssm_state_size(config.mamba_d_state)
        file.add_ssm_group_count(config.mamba_n_groups)
        file.add_ssm_inner_size(config.mamba_d_ssm)
        file.add_ssm_time_step_rank(config.mamba_n_heads)
    elif kind == "nemotron_h":
        file.add_ssm_conv_kernel(config.conv_kernel)
        file.add_ssm_state_size(config.ssm_state_size)
        file.add_ssm_group_count(config.n_groups)
        file.add_ssm_inner_size(config.mamba_num_heads * config.mamba_head_dim)
        file.add_ssm_time_step_rank(config.mamba_num_heads)
        file.add_rope_scaling_finetuned(False)
        file.add_rope_dimension_count(config.head_dim)
        file.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    elif kind.startswith(("qwen3_next", "qwen3_5")):
        file.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        file.add_ssm_state_size(config.linear_key_head_dim)
        file.add_ssm_group_count(config.linear_num_key_heads)
        file.add_ssm_time_step_rank(config.linear_num_value_heads)
        file.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
        file.add_full_attention_interval(attends(config).index(True) + 1)
        if kind.startswith("qwen3_5"):
            file.add_rope_dimension_sections([11, 11, 10, 0])


def has_experts(config: Any) -> bool:
    return config.model_type != "nemotron_h" or "moe" in config.layers_block_type


def add_nemotron_experts(file: gguf.GGUFWriter, config: Any) -> None:
    file.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
    file.add_expert_shared_count(config.n_shared_experts)
    file.add_expert_weights_norm(config.norm_topk_prob)
    file.add_expert_weights_scale(config.routed_scaling_factor)
    file.add_expert_group_count(config.n_group)
    file.add_expert_group_used_count(config.topk_group)
    if config.moe_latent_size:
        file.add_moe_latent_size(config.moe_latent_size)


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def add_latents(file: gguf.GGUFWriter, config: Any, old: bool) -> None:
    """The keys of DeepSeek's files."""
    keys = config.qk_nope_head_dim + config.qk_rope_head_dim
    file.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank:
        file.add_q_lora_rank(config.q_lora_rank)
    file.add_key_length(keys if old else config.kv_lora_rank + config.qk_rope_head_dim)
    file.add_value_length(config.v_head_dim if old else config.kv_lora_rank)
    file.add_leading_dense_block_count(config.first_k_dense_replace)
    file.add_expert_shared_count(config.n_shared_experts)
    file.add_expert_weights_scale(config.routed_scaling_factor)
    if not old:
        file.add_key_length_mla(keys)
        file.add_value_length_mla(config.v_head_dim)
        file.add_expert_weights_norm(config.norm_topk_prob)
        file.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        file.add_expert_group_count(config.n_group)
        file.add_expert_group_used_count(config.topk_group)


def add_settings(file: gguf.GGUFWriter, config: Any, ffn: Any) -> None:
    """The keys that convert_hf_to_gguf.py writes."""
    heads, kind = config.num_attention_heads, config.model_type
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    ffn = ffn or getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    rope = getattr(config, "rope_parameters", None) or {}
    if "full_attention" in rope:
        rope = rope["full_attention"]
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    further = PREDICTORS * (file.arch in PREDICTING)
    if kind == "nemotron_h":
        moe = has_experts(config)
        kinds = [*config.layers_block_type, *["moe"] * further]
        ffn = [(config.moe_intermediate_size if moe else ffn) * (one in ("mlp", "moe")) for one in kinds]
    if kind != "qwen3_5_moe_text":
        file.add_feed_forward_length(ffn)
    file.add_block_count(config.num_hidden_layers + further)
    file.add_head_count(heads)
    latent, old = kind.startswith("deepseek"), kind == "deepseek_v2"
    keys = 1 if latent and not old else getattr(config, "num_key_value_heads", None) or heads
    listed = kind.startswith("lfm2") or kind in ("granitemoehybrid", "bamba", "nemotron_h")
    predicting = [True] * (further if kind == "nemotron_h" else 0)
    file.add_head_count_kv([keys * has for has in attends(config) + predicting] if listed else keys)
    add_states(file, config)
    if further:
        file.add_nextn_predict_layers(further)
    if latent:
        size = config.qk_rope_head_dim
        add_latents(file, config, old)
    elif size * heads != config.hidden_size:
        file.add_key_length(size)
        file.add_value_length(size)
    if epsilon := getattr(config, "rms_norm_eps", None) or (kind.startswith("lfm2") and config.norm_eps):
        file.add_layer_norm_rms_eps(epsilon)
    else:
        file.add_layer_norm_eps(next((v for k in ("layer_norm_eps", "norm_epsilon", "layer_norm_epsilon")
                                      if (v := getattr(config, k, None))), 1e-5))
    if rope:
        file.add_rope_freq_base(rope["rope_theta"])
        file.add_rope_dimension_count(int(size * rope.get("partial_rotary_factor", 1.0)))
    if rope.get("rope_type") == "yarn":
        file.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        file.add_rope_scaling_factor(rope["factor"])
        file.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if latent:
            file.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])
    if rope.get("rope_type") == "longrope":
        factor = config.max_position_embeddings / config.original_max_position_embeddings
        file.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
        file.add_rope_scaling_attn_factors((1 + np.log(factor) / np.log(config.original_max_position_embeddings)) ** 0.5)
    window = getattr(config, "sliding_window", None)
    if window and kind in ("gpt_oss", "gemma2", "gemma3_text", "phi3", "starcoder2"):
        file.add_sliding_window(window)
    for key, add in (("attn_logit_softcapping", file.add_attn_logit_softcapping), ("clip_qkv", file.add_clamp_kqv),
                     ("final_logit_softcapping", file.add_final_logit_softcapping),
                     ("embedding_multiplier", file.add_embedding_scale), ("attention_multiplier", file.add_attention_scale),
                     ("residual_multiplier", file.add_residual_scale), ("logits_scaling", file.add_logit_scale)):
        if getattr(config, key, None) and kind != "falcon_h1":  # whose weights have been multiplied
            add(getattr(config, key))
    experts = next((n for key in ("num_local_experts", "num_experts", "n_routed_experts") if (n := getattr(config, key, None))), None)
    if experts and has_experts(config):
        file.add_expert_count(experts)
        file.add_expert_used_count(config.num_experts_per_tok)
        if kind == "nemotron_h":
            add_nemotron_experts(file, config)
        if kind == "gpt_oss":
            file.add_expert_feed_forward_length(ffn)
        if kind == "granitemoehybrid":
            file.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
        if kind == "lfm2_moe":
            file.add_leading_dense_block_count(config.num_dense_layers)
            file.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        for key, add in (("moe_intermediate_size", file.add_expert_feed_forward_length),
                         ("shared_expert_intermediate_size", file.add_expert_shared_feed_forward_length)):
            if getattr(config, key, None):
                add(getattr(config, key))
    if kind == "stablelm":
        file.add_parallel_residual(config.use_parallel_residual)


def llama3_factors(config: Any, rope: dict[str, Any]) -> np.ndarray:
    """What each frequency is divided by: convert_hf_to_gguf.py's rope_freqs."""
    size = config.hidden_size // config.num_attention_heads
    waves = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, size, 2) / size)
    low, high, old = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    smooth = (old / waves - low) / (high - low)
    between = 1 / ((1 - smooth) / rope["factor"] + smooth)
    return np.where(waves < old / high, 1, np.where(waves > old / low, rope["factor"], between)).astype(np.float32)


def tiled(name: str, value: np.ndarray, config: Any) -> np.ndarray:
    """The values' heads in the order 0, 0 + n, .., 1, 1 + n, .. of keys' heads."""
    heads, width = config.linear_num_value_heads, config.linear_value_head_dim
    order = np.arange(heads).reshape(config.linear_num_key_heads, -1).T.flatten()
    elements = (order[:, None] * width + np.arange(width)).flatten()
    if name.endswith("out_proj.weight"):
        return value[:, elements]
    if "in_proj_qkv" in name or "conv1d" in name:
        first = 2 * config.linear_num_key_heads * config.linear_key_head_dim
        return np.concatenate([value[:first], value[first:][elements]])
    if len(value) == heads * width and "norm" not in name:
        return value[elements]
    return value[order] if len(value) == heads else value


def multiplied(name: str, value: np.ndarray, config: Any) -> np.ndarray:
    """Falcon-H1's weights, with the factors that the converter moves into them."""
    inner, keys = config.mamba_d_ssm, config.mamba_n_groups * config.mamba_d_state
    parts = np.repeat(config.ssm_multipliers, [inner, inner, keys, keys, config.mamba_n_heads]).astype(np.float32)
    factors = {"down_proj.": config.mlp_multipliers[1], "gate_proj.": config.mlp_multipliers[0],
               ".k_proj.": config.key_multiplier * config.attention_in_multiplier, ".q_proj.": config.attention_in_multiplier,
               ".v_proj.": config.attention_in_multiplier, ".o_proj.": config.attention_out_multiplier,
               ".out_proj.": config.ssm_out_multiplier, ".in_proj.": config.ssm_in_multiplier,
               "lm_head.": config.lm_head_multiplier, "embed_tokens.": config.embedding_multiplier}
    for part, factor in factors.items():
        value = value * np.float32(factor) if part in name else value
    return value * parts[:, None] if ".in_proj." in name else value


def stored(name: str, value: np.ndarray, config: Any, architecture: str) -> np.ndarray:
    if architecture in PERMUTED and ".q_proj." in name:
        return permuted(value, config.num_attention_heads)
    if architecture in PERMUTED and ".k_proj." in name:
        return permuted(value, config.num_key_value_heads)
    if architecture.startswith("gemma") and "norm" in name:
        return value + 1
    if architecture == "falcon-h1":
        value = multiplied(name, value, config)
    normed = "mamba.norm" in name or "mixer.norm" in name
    if name.endswith((".A_log", ".D", "conv1d.weight", "conv.conv.weight")) or normed:
        value = -np.exp(value) if name.endswith(".A_log") else value
        rows = len(value) if not normed else config.n_groups if "mixer" in name else config.mamba_n_groups
        value = value if value.ndim == 1 and "linear_attn" in name else value.reshape(rows, -1)
    if architecture.startswith("qwen3") and name.endswith("norm.weight") and "linear_attn.norm" not in name:
        return value + 1
    if architecture.startswith("qwen35") and ".linear_attn." in name:
        return tiled(name, value, config)
    if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return value.T
    return value


def renamed(name: str, config: Any) -> str:
    """Names that the package's table has for all architectures."""
    shared = ".mlp.shared_experts." if getattr(config, "num_local_experts", 0) else ".mlp."
    for old, new in ((".dt_bias", ".dt_proj.bias"), (".expert_bias", ".expert_bias.bias"), (".block_sparse_moe.", ".mlp."),
                     (".mlp.router.weight", ".mlp.gate.weight"), (".shared_mlp.input_linear", shared + "gate_up_proj"),
                     (".shared_mlp.output_linear", shared + "down_proj")):
        name = name.replace(old, new)
    if config.model_type == "nemotron_h" and ".mixer.experts." not in name:
        name = name.replace("model.", "backbone.")
    return name.replace(".mixer.experts.", ".mlp.experts.")


def apart(value: Any, config: Any) -> tuple[Any, Any]:
    """The rows of queries, keys and values of Qwen3-Next, and those of gates, of which each group of heads has its own."""
    own = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
    sizes = [config.linear_key_head_dim] * 2 + [own] * 2
    parts = [part.flatten(0, 1) for part in value.unflatten(0, (config.linear_num_key_heads, -1)).split(sizes, dim=1)]
    return __import__("torch").cat(parts[:3]), parts[3]


def tensors(model: Any, packed_gates: bool = True) -> list[tuple[int, str, Any]]:
    """The model's tensors, numbered. The gates of experts and what they gate, packed in one tensor, are apart."""
    found = []
    for i, (name, value) in enumerate(model.state_dict().items()):
        name = renamed(name, model.config)
        if model.config.model_type == "gpt_oss" and ".experts." in name:  # transposed, and gates and ups alternate
            name, end = (name.removesuffix("_bias"), ".bias") if name.endswith("_bias") else (name, ".weight")
            value = value if end == ".bias" else value.transpose(1, 2)
            parts = {"gate": value[:, ::2], "up": value[:, 1::2]} if "gate_up" in name else {"gate_up": value}
            found += [(i, name.replace("gate_up", part) + end, half) for part, half in parts.items()]
        elif model.config.model_type == "deepseek_v3" and "kv_b_proj" in name:
            heads = value.unflatten(0, (model.config.num_attention_heads, -1))
            keys, values = heads.split([model.config.qk_nope_head_dim, model.config.v_head_dim], dim=1)
            found += [(i, name.replace("kv_b", "k_b"), keys.transpose(1, 2)), (i, name.replace("kv_b", "v_b"), values)]
        elif name.endswith("e_score_correction_bias"):
            found.append((i, name.replace("_bias", ".bias"), value))
        elif "in_proj_qkvz" in name and not packed_gates:
            found += [(i, name.replace("qkvz", part), rows) for part, rows in zip(("qkv", "z"), apart(value, model.config))]
        elif name.endswith(("mlp.gate_up_proj.weight", "shared_experts.gate_up_proj.weight")) and "granite" in model.config.model_type:
            found += [(i, name.replace("gate_up", part), half) for part, half in zip(("gate", "up"), value.chunk(2))]
        elif name.endswith("sinks"):
            found.append((i, name + ".weight", value))
        elif name.endswith("experts.gate_up_proj"):
            gate, up = value.chunk(2, dim=1)
            found += [(i, name.replace("gate_up", part) + ".weight", half) for part, half in (("gate", gate), ("up", up))]
        else:
            found.append((i, name + ".weight" * name.endswith(("experts.down_proj", "experts.up_proj")), value))
    return found


def write(path: Path, model: Any, architecture: str, dtype: str) -> None:
    config = model.config
    file = gguf.GGUFWriter(path, architecture, split_max_tensors=7 if dtype == "parts" else 0)
    add_settings(file, config, len(model.model.layers[0].feed_forward.w1.weight) if architecture.startswith("lfm2") else 0)
    kinds = {v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(kinds[architecture], config.num_hidden_layers)
    done = set()
    for i, name, value in tensors(model, "packed" in path.stem):
        target = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if target is None or (name == "lm_head.weight" and config.tie_word_embeddings) or target in done:
            continue
        done.add(target)
        data = np.ascontiguousarray(stored(name, value.float().numpy(), config, architecture))
        kind = gguf.GGMLQuantizationType.F32
        if data.ndim >= 2 and not target.endswith(KEPT) and dtype not in ("float32", "parts"):
            kind, data = packed(data, i, dtype)
        file.add_tensor(target, data, raw_dtype=kind)
    if architecture in PREDICTING:
        file.add_tensor(f"blk.{config.num_hidden_layers}.nextn.enorm.weight", np.ones(config.hidden_size, np.float32))
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        file.add_tensor("rope_freqs.weight", llama3_factors(config, rope))
    for part in ("short", "long"):
        if rope.get("rope_type") == "longrope":
            file.add_tensor(f"rope_factors_{part}.weight", np.array(rope[f"{part}_factor"], np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def rounded(model: Any, architecture: str, dtype: str) -> None:
    """Gives the model the values that its blocks store."""
    import torch

    for i, name, value in tensors(model):  # which are views of the model's
        if value.dim() < 2 or name.endswith((".bias", "conv.conv.weight", "conv1d.weight")):
            continue
        kind, data = packed(stored(name, np.ascontiguousarray(value.numpy()), model.config, architecture), i, dtype)
        data = gguf.quants.dequantize(data, kind)
        heads = {".q_proj.": model.config.num_attention_heads, ".k_proj.": model.config.num_key_value_heads}
        for part, count in heads.items():
            if part in name and architecture in PERMUTED:
                data = data.reshape(count, -1, 2, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        value.copy_(torch.from_numpy(np.ascontiguousarray(data)))


def save(name: str, folder: Path) -> None:
    architecture, kind, config, dtype = CASES[name]
    folder.mkdir(parents=True, exist_ok=True)
    model = huggingface.make(kind, config)
    if dtype in ("blocks", "k-blocks", "mxfp4"):
        rounded(model, architecture, dtype)
    elif dtype != "parts":
        model = model.to(getattr(__import__("torch"), dtype)).float()
    write(folder / f"{name}.gguf", model, architecture, dtype)
    for key, value in model.state_dict().items():
        if "kv_b_proj" in key and name.endswith("old"):
            value.copy_(value.bfloat16())  # as llmpart widens a matrix in blocks of which it takes parts
    huggingface.write_tokens(model, folder, name.endswith("long"))


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
