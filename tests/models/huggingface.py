"""Saves small random models of many families as Hugging Face folders, with the tokens that transformers gives.

Usage: huggingface.py OUT [NAME ...]       all cases, or those that are named, into folders of OUT
       huggingface.py --check LLMPART OUT  compiles each folder of OUT and compares its tokens; exit status 1: some differ

OUT/NAME/ gets config.json, model.safetensors (or shards) and tokens.json: prompts, and for each the greedy tokens
of the model in f32. The small set beside this file was chosen from them. Needs torch and transformers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

VOCAB = 64
PROMPTS = [[1, 5, 9, 33, 2, 61, 8, 8, 40], [3], [50, 60, 10, 20, 30, 1, 2, 3, 4, 5, 6, 7]]
COUNT = 12


def like_llama(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0} | more


def like_deepseek(**more: Any) -> dict[str, Any]:
    return like_llama(num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=10,
                      n_routed_experts=8, n_shared_experts=2, moe_intermediate_size=12) | more


def like_gpt_oss(**more: Any) -> dict[str, Any]:
    rope = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 4.0, "truncate": False, "original_max_position_embeddings": 32}
    return like_llama(head_dim=8, num_local_experts=6, num_experts_per_tok=3, sliding_window=5, rope_parameters=rope) | more


def like_lfm2(**more: Any) -> dict[str, Any]:
    return like_llama(num_hidden_layers=3, block_multiple_of=4) | more


def like_granite_hybrid(**more: Any) -> dict[str, Any]:
    return like_llama(num_hidden_layers=3, layer_types=["mamba", "attention", "mamba"], num_local_experts=4, num_experts_per_tok=2,
                      intermediate_size=12, shared_intermediate_size=28, mamba_n_heads=6, mamba_d_state=16, embedding_multiplier=6.0,
                      attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0) | more


def like_falcon(**more: Any) -> dict[str, Any]:
    return like_llama(mamba_d_ssm=40, mamba_n_heads=4, mamba_d_state=12, mamba_n_groups=2, lm_head_multiplier=0.4,
                      embedding_multiplier=3.0, mlp_multipliers=[0.7, 0.3], key_multiplier=0.6, attention_out_multiplier=0.8,
                      attention_in_multiplier=1.5, ssm_multipliers=[0.9, 0.5, 0.6, 1.2, 0.8], ssm_in_multiplier=1.3,
                      ssm_out_multiplier=0.4) | more


def like_nemotron(*kinds: str, **more: Any) -> dict[str, Any]:
    sizes = {key: value for key, value in like_llama().items() if key != "num_hidden_layers"}
    return sizes | {"head_dim": 8, "layers_block_type": list(kinds), "mamba_num_heads": 6, "mamba_head_dim": 5, "n_groups": 2,
                    "ssm_state_size": 12, "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
                    "moe_shared_expert_intermediate_size": 20} | more


def like_delta(**more: Any) -> dict[str, Any]:
    return like_llama(head_dim=8, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=6, linear_value_head_dim=5) | more


def like_llama4(**more: Any) -> dict[str, Any]:
    return like_llama(head_dim=8, num_hidden_layers=4, intermediate_size=20, intermediate_size_mlp=28, num_local_experts=5,
                      no_rope_layers=[1, 0, 1, 0], attention_chunk_size=5, floor_scale=3, attn_scale=0.7,
                      rope_parameters=LLAMA3) | more


DEEPSEEK_YARN = {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.9, "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
ALPHA = {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0, "rope_theta": 10000.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.5, 2.5, 4.0]}
IMAGES = {"vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                            "image_size": 28, "patch_size": 14}, "mm_tokens_per_image": 4}
LLAMA4_IMAGES = {"vision_config": {"hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
                                   "image_size": 28, "patch_size": 14, "vision_output_dim": 16, "projector_input_dim": 16,
                                   "projector_output_dim": 16}}
QWEN_IMAGES = {"vision_config": {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 24,
                                 "patch_size": 4, "num_position_embeddings": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}}
# NAME: model type, configuration, type of the weights
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "llama": ("llama", like_llama(head_dim=10, num_attention_heads=6, num_key_value_heads=3, attention_bias=True,
                                  mlp_bias=True), "float32"),
    "llama3-bf16": ("llama", like_llama(rope_theta=500000.0, rope_scaling=LLAMA3, tie_word_embeddings=True), "bfloat16"),
    "llama-linear-f16": ("llama", like_llama(rope_scaling={"rope_type": "linear", "factor": 3.0}), "float16"),
    "llama-yarn": ("llama", like_llama(rope_scaling={"rope_type": "yarn", "factor": 4.0,
                                                     "original_max_position_embeddings": 32}), "float32"),
    "mistral-sharded": ("mistral", like_llama(sliding_window=5, head_dim=12), "float32"),
    "mistral-full": ("mistral", like_llama(sliding_window=None), "float32"),
    "qwen2": ("qwen2", like_llama(hidden_size=20, num_attention_heads=5, num_key_value_heads=1), "float32"),
    "qwen2-window": ("qwen2", like_llama(use_sliding_window=True, sliding_window=4, max_window_layers=1), "float32"),
    "qwen3": ("qwen3", like_llama(head_dim=8, num_attention_heads=6), "float32"),
    "smollm3": ("smollm3", like_llama(no_rope_layers=[1, 0]), "float32"),
    "smollm3-window": ("smollm3", like_llama(num_hidden_layers=4, no_rope_layer_interval=2, use_sliding_window=True,
                                             sliding_window=4), "float32"),
    "gemma": ("gemma", like_llama(head_dim=8, num_key_value_heads=1), "float32"),
    "gemma2": ("gemma2", like_llama(head_dim=8, sliding_window=6, query_pre_attn_scalar=24, attn_logit_softcapping=4.0,
                                    final_logit_softcapping=9.0), "float32"),
    "gemma3": ("gemma3_text", like_llama(head_dim=8, sliding_window=6, query_pre_attn_scalar=20,
                                         layer_types=["sliding_attention", "full_attention"]), "float32"),
    "phi": ("phi", like_llama(num_key_value_heads=4, hidden_size=32), "float32"),
    "phi3": ("phi3", like_llama(original_max_position_embeddings=128), "float32"),
    # Prompts of 9 and 12 tokens are beyond the original context, and one token grows beyond it.
    "phi3-long": ("phi3", like_llama(max_position_embeddings=64, original_max_position_embeddings=8, rope_scaling=LONGROPE),
                  "float32"),
    "phi4": ("phi3", like_llama(hidden_size=32, partial_rotary_factor=0.75, sliding_window=7,
                                original_max_position_embeddings=128), "float32"),
    "olmo": ("olmo", like_llama(clip_qkv=0.02), "float32"),
    "olmo2": ("olmo2", like_llama(), "float32"),
    "granite": ("granite", like_llama(embedding_multiplier=6.0, attention_multiplier=0.3, residual_multiplier=0.4,
                                      logits_scaling=4.0), "float32"),
    "starcoder2": ("starcoder2", like_llama(sliding_window=6), "float32"),
    "stablelm": ("stablelm", like_llama(hidden_size=32, use_qkv_bias=True), "float32"),
    "stablelm-parallel": ("stablelm", like_llama(hidden_size=32, use_parallel_residual=True), "float32"),
    "gemma3-images": ("gemma3", {"text_config": like_llama(vocab_size=VOCAB, head_dim=8, sliding_window=6,
                                                           query_pre_attn_scalar=20), **IMAGES}, "float32"),
    # The file has a head of its own, which transformers takes although the configuration says that it is the embedding.
    "llama-own-head": ("llama", like_llama(num_hidden_layers=1, tie_word_embeddings=False), "float32"),
    # its head is in f64, which transformers rounds to the type of the configuration
    "llama-f64-head": ("llama", like_llama(num_hidden_layers=1, tie_word_embeddings=False), "float32"),
    "mixtral": ("mixtral", like_llama(num_local_experts=5, num_experts_per_tok=2, intermediate_size=36), "float32"),
    "qwen2_moe": ("qwen2_moe", like_llama(num_hidden_layers=3, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20,
                                          shared_expert_intermediate_size=28, mlp_only_layers=[1]), "float32"),
    "qwen3_moe": ("qwen3_moe", like_llama(head_dim=8, num_hidden_layers=2, num_experts=8, num_experts_per_tok=2,
                                          moe_intermediate_size=16, norm_topk_prob=True), "float32"),
    "qwen3_moe-sharded-bf16": ("qwen3_moe", like_llama(head_dim=8, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=12,
                                                       norm_topk_prob=False, decoder_sparse_step=2), "bfloat16"),
    "olmoe": ("olmoe", like_llama(num_experts=6, num_experts_per_tok=3, intermediate_size=20, clip_qkv=1.0), "float32"),
    "granitemoe": ("granitemoe", like_llama(num_local_experts=6, num_experts_per_tok=3, embedding_multiplier=6.0,
                                            attention_multiplier=0.3, residual_multiplier=0.4, logits_scaling=4.0), "float32"),
    "phimoe": ("phimoe", like_llama(num_local_experts=6, router_jitter_noise=0.1, attention_bias=True, lm_head_bias=True),
               "float32"),
    "glm4_moe": ("glm4_moe", like_llama(num_hidden_layers=3, head_dim=8, n_routed_experts=8, num_experts_per_tok=2,
                                        moe_intermediate_size=12, n_shared_experts=2, routed_scaling_factor=1.5,
                                        use_qk_norm=True, attention_bias=True), "float32"),
    "glm4_moe-groups": ("glm4_moe", like_llama(num_hidden_layers=2, head_dim=8, n_routed_experts=8, num_experts_per_tok=3,
                                               moe_intermediate_size=12, n_group=4, topk_group=2, first_k_dense_replace=0,
                                               norm_topk_prob=False), "float32"),
    "deepseek_v2": ("deepseek_v2", like_deepseek(q_lora_rank=None, num_experts_per_tok=2, routed_scaling_factor=2.0,
                                                 first_k_dense_replace=1, num_hidden_layers=3), "float32"),
    "deepseek_v2-groups-bf16": ("deepseek_v2", like_deepseek(topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                                             num_experts_per_tok=3, attention_bias=True, mlp_bias=True,
                                                             rope_scaling=DEEPSEEK_YARN), "bfloat16"),
    "deepseek_v3": ("deepseek_v3", like_deepseek(n_group=4, topk_group=2, num_experts_per_tok=3, first_k_dense_replace=1,
                                                 rope_scaling=DEEPSEEK_YARN), "float32"),
    "deepseek_v3-halves": ("deepseek_v3", like_deepseek(n_group=1, topk_group=1, num_experts_per_tok=2, norm_topk_prob=False,
                                                        rope_interleave=False, first_k_dense_replace=0, attention_bias=True),
                           "float32"),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", like_llama(head_dim=8, rope_parameters=ALPHA), "float32"),
    "hunyuan_v1_moe": ("hunyuan_v1_moe", like_llama(head_dim=8, num_experts=6, moe_topk=[3, 3], intermediate_size=20,
                                                    rope_parameters=ALPHA), "float32"),
    "ernie4_5": ("ernie4_5", like_llama(head_dim=8, use_bias=True), "float32"),
    "ernie4_5_moe": ("ernie4_5_moe", like_llama(num_hidden_layers=4, moe_num_experts=6, moe_k=3, moe_intermediate_size=12,
                                                moe_num_shared_experts=2, moe_layer_end_index=2), "float32"),
    "llama4": ("llama4_text", like_llama4(num_hidden_layers=3, no_rope_layers=[1, 0, 1], interleave_moe_layer_step=2), "float32"),
    "llama4-two-bf16": ("llama4_text", like_llama4(use_qk_norm=False, num_experts_per_tok=2, attn_temperature_tuning=False,
                                                   attention_bias=True, no_rope_layer_interval=2, no_rope_layers=None), "bfloat16"),
    "llama4-images": ("llama4", {"text_config": like_llama4(vocab_size=VOCAB, num_hidden_layers=2, no_rope_layers=[1, 0]), **LLAMA4_IMAGES}, "float32"),
    "lfm2": ("lfm2", like_lfm2(num_hidden_layers=5, full_attn_idxs=[1, 3], block_auto_adjust_ff_dim=False), "float32"),
    "lfm2-bias-bf16": ("lfm2", like_lfm2(conv_bias=True, conv_L_cache=4, block_ffn_dim_multiplier=1.2, full_attn_idxs=[1, 2]),
                       "bfloat16"),
    "lfm2_moe": ("lfm2_moe", like_lfm2(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12, num_dense_layers=1,
                                       routed_scaling_factor=1.5, layer_types=["conv", "full_attention", "conv"]), "float32"),
    "lfm2_moe-plain": ("lfm2_moe", like_lfm2(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12, use_expert_bias=False,
                                             norm_topk_prob=False, layer_types=["conv", "full_attention", "conv"]), "float32"),
    "granitemoehybrid": ("granitemoehybrid", like_granite_hybrid(mamba_n_groups=2), "float32"),
    "granitemoehybrid-dense-bf16": ("granitemoehybrid", like_granite_hybrid(
        num_local_experts=0, position_embedding_type="rope", mamba_d_conv=3, mamba_proj_bias=True, mamba_chunk_size=8), "bfloat16"),
    "qwen3_next": ("qwen3_next", like_delta(num_hidden_layers=5, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12,
                                            shared_expert_intermediate_size=10, mlp_only_layers=[2]), "float32"),
    "qwen3_next-halves": ("qwen3_next", like_delta(
        layer_types=["linear_attention", "full_attention"], num_experts=4, num_experts_per_tok=3, moe_intermediate_size=8,
        shared_expert_intermediate_size=10, norm_topk_prob=False, decoder_sparse_step=2, linear_conv_kernel_dim=3,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}), "float32"),
    "qwen3_5-bf16": ("qwen3_5_text", like_delta(num_hidden_layers=4, tie_word_embeddings=True), "bfloat16"),
    "qwen3_5_moe-images": ("qwen3_5_moe", {"text_config": {
        key: value for key, value in like_delta(
            vocab_size=VOCAB, layer_types=["linear_attention", "full_attention"], num_experts=5, num_experts_per_tok=2,
            moe_intermediate_size=12, shared_expert_intermediate_size=10,
            rope_parameters={"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.25,
                             "mrope_section": [1, 0, 0], "mrope_interleaved": True}).items() if key != "intermediate_size"},
        **QWEN_IMAGES}, "float32"),
    "bamba": ("bamba", like_llama(num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1, attn_layer_indices=[1],
                                  mamba_n_heads=6, mamba_d_state=12, mamba_n_groups=3, mamba_conv_bias=False, attention_bias=True,
                                  mlp_bias=True), "float32"),
    "falcon_h1": ("falcon_h1", like_falcon(), "float32"),
    "falcon_h1-norm-bf16": ("falcon_h1", like_falcon(num_hidden_layers=1, mamba_rms_norm=True, mamba_d_ssm=None, projectors_bias=True,
                                                     mamba_proj_bias=True, attention_bias=True, mlp_bias=True), "bfloat16"),
    "falcon_h1-gate-first": ("falcon_h1", like_falcon(num_hidden_layers=1, mamba_rms_norm=True, mamba_norm_before_gate=False,
                                                      mamba_n_groups=1), "float32"),
    "nemotron_h": ("nemotron_h", like_nemotron("linear_attention", "moe", "full_attention", "mlp", "linear_attention", use_bias=True),
                   "float32"),
    "nemotron_h-latent-bf16": ("nemotron_h", like_nemotron(
        "moe", "linear_attention", "full_attention", "mlp", moe_latent_size=16, n_group=3, topk_group=2, routed_scaling_factor=1.5,
        norm_topk_prob=False, mlp_bias=True, n_groups=1), "bfloat16"),
    "gpt_oss": ("gpt_oss", like_gpt_oss(num_hidden_layers=3), "float32"),
    "gpt_oss-bf16": ("gpt_oss", like_gpt_oss(swiglu_limit=1.5, swiglu_alpha=1.2, attention_bias=False), "bfloat16"),
    "gpt_oss-mxfp4": ("gpt_oss", like_gpt_oss(hidden_size=32, intermediate_size=64, num_hidden_layers=1), "bfloat16"),
    "gpt2": ("gpt2", {"n_embd": 25, "n_layer": 2, "n_head": 5, "n_positions": 128}, "float32"),
    "qwen3-both": ("qwen3", like_llama(head_dim=8, rope_theta=500.0), "float32"),
    "gemma3-both": ("gemma3_text", like_llama(head_dim=8, sliding_window=6, query_pre_attn_scalar=20, rope_theta=500.0,
                                              layer_types=["sliding_attention", "full_attention"]), "float32"),
    "llama-partial": ("llama", like_llama(head_dim=8), "float32"),
}
# Keys that are written into the saved config.json, before transformers reads it again
EDITS: dict[str, dict[str, Any]] = {
    "llama-own-head": {"tie_word_embeddings": True},
    # how people add YaRN to a file that transformers 5 saved
    "qwen3-both": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}},
    "gemma3-both": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "llama-partial": {"partial_rotary_factor": 0.5},
}


def make(kind: str, config: dict[str, Any]) -> Any:
    """A model of random weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

    torch.manual_seed(3)
    if "vision_config" in config:
        model = AutoModelForImageTextToText.from_config(AutoConfig.for_model(kind, **config)).eval()
    else:
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, vocab_size=VOCAB, **config)).eval()
    # Scales of norms lie around 1, which Gemma and Qwen add themselves, and biases around 0. Tables are small, because
    # a tied head would otherwise repeat the last token.
    for key, value in model.named_parameters():
        if value.dim() == 1:
            adds_one = kind.startswith("gemma") or (kind.startswith(("qwen3_next", "qwen3_5")) and "linear_attn" not in key)
            centre = 0.0 if key.endswith("bias") or adds_one else 1.0
            value.data = centre + 0.3 * torch.randn_like(value)
        else:
            value.data = torch.randn_like(value) * (0.2 if "embed" in key else 2.0 / value.shape[-1] ** 0.5)
    for key, value in model.named_buffers():
        if key.endswith(("e_score_correction_bias", "expert_bias")):
            value.data = 0.2 * torch.randn_like(value)
    model.tie_weights()
    return model


def write_tokens(model: Any, folder: Path, cached: bool) -> None:
    """Writes the greedy tokens of the model in f32. `cached`: keys of earlier steps keep the frequencies of their step."""
    import torch

    model = model.float()
    model.set_attn_implementation("eager")  # others leave out the soft cap of scores
    tokens = []
    with torch.no_grad():
        for prompt in PROMPTS:
            ids, past = list(prompt), None
            for _ in range(COUNT):
                known = past.get_seq_length() if past else 0
                out = model(torch.tensor([ids[known:]]), past_key_values=past, use_cache=cached)
                past = out.past_key_values
                ids.append(int(out.logits[0, -1].argmax()))
            tokens.append(ids[len(prompt):])
    text = f'{{\n "prompts": {json.dumps(PROMPTS)},\n "tokens": {json.dumps(tokens)}\n}}\n'
    (folder / "tokens.json").write_text(text)


def pack_experts(model: Any, folder: Path) -> None:
    """Replaces the experts of a saved gpt-oss by random blocks of MXFP4, and those of the model by what transformers reads in them."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    tensors = load_file(folder / "model.safetensors")
    for key in [k for k in tensors if k.endswith("experts.gate_up_proj") or k.endswith("experts.down_proj")]:
        experts, inputs, outputs = tensors.pop(key).shape
        shape = (experts, outputs, inputs // 32)
        tensors[key + "_blocks"] = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
        tensors[key + "_scales"] = torch.randint(122, 127, shape, dtype=torch.uint8)
        read = convert_moe_packed_tensors(tensors[key + "_blocks"], tensors[key + "_scales"])
        model.get_parameter(key).data = read.contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def save(name: str, folder: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    kind, config, dtype = CASES[name]
    model = make(kind, config).to(getattr(torch, dtype))
    model.save_pretrained(folder, **({"max_shard_size": "10KB"} if "sharded" in name else {}))
    (folder / "generation_config.json").unlink(missing_ok=True)
    if "f64" in name:
        tensors = load_file(folder / "model.safetensors")
        tensors["lm_head.weight"] = tensors["lm_head.weight"].double()
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    if "mxfp4" in name:
        pack_experts(model, folder)
    if name in EDITS:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | EDITS[name], indent=1) + "\n")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    write_tokens(model, folder, name.endswith("long"))


def check(llmpart: str, folder: Path, bundle: Path) -> str:
    """What is wrong, or nothing."""
    model = next((f for f in sorted(folder.glob("*.gguf"))), folder)  # of a file in parts the first
    exact = ["--activations=f32"] if "-nf4" in folder.name else []  # blocks are multiplied with int8 else
    made = subprocess.run([llmpart, "compile", model, "--device=host", "-O", "1", *exact, "-o", bundle],
                          capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip()
    lists = json.loads((folder / "tokens.json").read_text())
    for prompt, wanted in zip(lists["prompts"], lists["tokens"]):
        run = subprocess.run([llmpart, "run", bundle, "--tokens=" + ",".join(map(str, prompt)), "-n", str(len(wanted)),
                              "--ignore-eos", "--threads=1", "-o", "json"], capture_output=True, text=True)
        found = json.loads(run.stdout)["tokens"] if run.returncode == 0 else run.stderr
        if found != wanted:
            return f"{found} instead of {wanted}"
    return ""


def check_all(llmpart: str, folders: Path) -> int:
    failed = False
    with tempfile.TemporaryDirectory() as work:
        for folder in sorted(folders.iterdir()):
            wrong = check(llmpart, folder, Path(work) / "m.llmpart")
            print(f"{folder.name}: {wrong or 'equal'}")
            failed |= bool(wrong)
    return int(failed)


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        return check_all(sys.argv[2], Path(sys.argv[3]))
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or CASES:
        save(name, Path(sys.argv[1]) / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
