"""Small random models of the architectures that users export: a configuration and a class of transformers each.

The order is that of users' needs; a run that ends early has done the most wanted ones.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VOCAB = 320
SMOLLM2 = "smollm2-135m"  # a real model: examples/smollm2
EXAMPLE = Path(__file__).parents[2] / "examples" / "smollm2"


@dataclass(frozen=True)
class Architecture:
    """`config` goes to transformers' configuration of `kind`; `task` names the class of the model and optimum's export."""

    kind: str
    config: dict[str, Any]
    task: str = "text-generation"


# Exporters and what they offer. int4 is symmetric; int4-asym has zero points, int4-hqq those of Half-Quadratic
# Quantization, and int4-qdq has DequantizeLinear instead of MatMulNBits. bnb4 is NF4 of bitsandbytes. f16-gpu and
# int4-gpu are those that genai's builder writes for GPUs.
PRECISIONS = {"optimum": ("f32", "f16", "int8", "int4", "O2", "int4-asym", "int4-hqq", "int4-qdq", "bnb4"), "optimum-nopast": ("f32", "f16"),
              "genai": ("f32", "int4", "f16-gpu", "int8", "int4-gpu"), "script": ("f32", "f16"), "dynamo": ("f32", "f16")}

AUTO = {"text-generation": "AutoModelForCausalLM", "text2text-generation": "AutoModelForSeq2SeqLM", "fill-mask": "AutoModelForMaskedLM",
        "automatic-speech-recognition": "AutoModelForSpeechSeq2Seq"}


def llama(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 128} | more


def bert(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 128} | more


def crossed(**more: Any) -> dict[str, Any]:
    return {"d_model": 64, "encoder_layers": 2, "encoder_ffn_dim": 96, "encoder_attention_heads": 4, "decoder_layers": 2,
            "decoder_ffn_dim": 96, "decoder_attention_heads": 4, "max_position_embeddings": 128, "decoder_start_token_id": 1} | more


SEQ2SEQ, MASKED, SPEECH = "text2text-generation", "fill-mask", "automatic-speech-recognition"
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 1}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
LONGROPE = {"type": "longrope", "short_factor": [1.0 + 0.1 * i for i in range(8)], "long_factor": [1.5 + 0.2 * i for i in range(8)]}
WHISPER = {"d_model": 64, "encoder_layers": 2, "encoder_ffn_dim": 96, "encoder_attention_heads": 4, "decoder_layers": 2,
           "decoder_ffn_dim": 96, "decoder_attention_heads": 4, "num_mel_bins": 80, "max_target_positions": 64,
           "decoder_start_token_id": 1}

ARCHITECTURES = {
    "llama": Architecture("llama", llama()),
    "qwen2": Architecture("qwen2", llama()),
    "qwen3": Architecture("qwen3", llama(head_dim=16)),
    "mistral": Architecture("mistral", llama(sliding_window=5)),
    "gemma": Architecture("gemma", llama(head_dim=16, num_key_value_heads=1)),
    "gemma2": Architecture("gemma2", llama(head_dim=16, sliding_window=6, query_pre_attn_scalar=24, attn_logit_softcapping=4.0,
                                           final_logit_softcapping=9.0)),
    "gemma3": Architecture("gemma3_text", llama(head_dim=16, sliding_window=6, query_pre_attn_scalar=20,
                                                layer_types=["sliding_attention", "full_attention"])),
    "phi": Architecture("phi", llama(hidden_size=128, num_key_value_heads=4, partial_rotary_factor=0.5)),
    "phi3": Architecture("phi3", llama(partial_rotary_factor=1.0, original_max_position_embeddings=128)),
    "phi4": Architecture("phi3", llama(hidden_size=256, partial_rotary_factor=0.75, original_max_position_embeddings=128)),
    "gpt2": Architecture("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "smollm": Architecture("llama", llama(num_attention_heads=6, num_key_value_heads=3, hidden_size=96, tie_word_embeddings=True)),
    "opt": Architecture("opt", {"hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                                "max_position_embeddings": 128, "word_embed_proj_dim": 64}),
    "bloom": Architecture("bloom", {"hidden_size": 64, "n_layer": 2, "n_head": 4}),
    "falcon": Architecture("falcon", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": False}),
    "gpt-neox": Architecture("gpt_neox", llama(rotary_pct=0.5)),
    "gptj": Architecture("gptj", {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 128}),
    "mixtral": Architecture("mixtral", llama(num_local_experts=4, num_experts_per_tok=2)),
    "t5": Architecture("t5", T5, SEQ2SEQ),
    "bart": Architecture("bart", crossed(), SEQ2SEQ),
    "whisper": Architecture("whisper", WHISPER, SPEECH),
    "bert": Architecture("bert", bert(), MASKED),
    SMOLLM2: Architecture("llama", {}),
    "llama3": Architecture("llama", llama(rope_theta=500000.0, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64})),
    "phi3-long": Architecture("phi3", llama(max_position_embeddings=256, original_max_position_embeddings=16, rope_scaling=LONGROPE)),
    "smollm3": Architecture("smollm3", llama(no_rope_layers=[1, 0])),
    "qwen3-moe": Architecture("qwen3_moe", llama(head_dim=16, num_experts=4, **MOE)),
    "granite": Architecture("granite", llama(embedding_multiplier=6.0, residual_multiplier=0.3, attention_multiplier=0.2,
                                             logits_scaling=2.0)),
    "olmo": Architecture("olmo", llama(clip_qkv=2.0)),
    "olmo2": Architecture("olmo2", llama()),
    "stablelm": Architecture("stablelm", llama(num_key_value_heads=4, partial_rotary_factor=0.25, use_qkv_bias=True)),
    "starcoder2": Architecture("starcoder2", llama(sliding_window=7)),
    "cohere": Architecture("cohere", llama(logit_scale=0.25, use_qk_norm=True)),
    "cohere2": Architecture("cohere2", llama(logit_scale=0.25, sliding_window=6,
                                             layer_types=["sliding_attention", "full_attention"])),
    "glm": Architecture("glm", llama(head_dim=16, partial_rotary_factor=0.5, pad_token_id=0)),
    "glm4": Architecture("glm4", llama(head_dim=16, partial_rotary_factor=0.5, pad_token_id=0)),
    "helium": Architecture("helium", llama(head_dim=16)),
    "nemotron": Architecture("nemotron", llama(head_dim=32, partial_rotary_factor=0.5)),
    "arcee": Architecture("arcee", llama()),
    "deepseek-v3": Architecture("deepseek_v3", llama(
        num_key_value_heads=4, n_routed_experts=4, n_shared_experts=1, n_group=2, topk_group=1, kv_lora_rank=16, q_lora_rank=24,
        qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, first_k_dense_replace=1, **MOE)),
    "gpt-oss": Architecture("gpt_oss", llama(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=6)),
    "mpt": Architecture("mpt", {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 128}),
    "codegen": Architecture("codegen", {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 128, "n_ctx": 128}),
    "gpt-neo": Architecture("gpt_neo", {"hidden_size": 64, "num_layers": 2, "attention_types": [[["global", "local"], 1]],
                                        "num_heads": 4, "window_size": 6, "max_position_embeddings": 128}),
    "gpt-bigcode": Architecture("gpt_bigcode", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "falcon-new": Architecture("falcon", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
                                          "new_decoder_architecture": True, "alibi": False}),
    "falcon-alibi": Architecture("falcon", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True}),
    "opt-post": Architecture("opt", {"hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                                     "max_position_embeddings": 128, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    "ernie4-5": Architecture("ernie4_5", llama(head_dim=16)),
    "hunyuan": Architecture("hunyuan_v1_dense", llama(head_dim=16, rope_scaling=None)),
    "lfm2": Architecture("lfm2", llama(layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
    "exaone4": Architecture("exaone4", llama(sliding_window=6, layer_types=["sliding_attention", "full_attention"])),
    "seed-oss": Architecture("seed_oss", llama(head_dim=16)),
    "olmoe": Architecture("olmoe", llama(num_experts=4, num_experts_per_tok=2)),
    "qwen2-moe": Architecture("qwen2_moe", llama(num_experts=4, shared_expert_intermediate_size=48, **MOE)),
    "granitemoe": Architecture("granitemoe", llama(num_local_experts=4, num_experts_per_tok=2, attention_multiplier=0.25)),
    "phimoe": Architecture("phimoe", llama(num_local_experts=4, num_experts_per_tok=2)),
    "biogpt": Architecture("biogpt", bert()),
    "xglm": Architecture("xglm", {"d_model": 64, "ffn_dim": 96, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 128}),
    "persimmon": Architecture("persimmon", llama(num_key_value_heads=4)),
    "ctrl": Architecture("ctrl", {"n_embd": 64, "dff": 96, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "openai-gpt": Architecture("openai-gpt", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "mamba": Architecture("mamba", {"hidden_size": 64, "state_size": 8, "num_hidden_layers": 2}),
    "mt5": Architecture("mt5", T5 | {"feed_forward_proj": "gated-gelu"}, SEQ2SEQ),
    "marian": Architecture("marian", crossed(pad_token_id=2), SEQ2SEQ),
    "mbart": Architecture("mbart", crossed(), SEQ2SEQ),
    "pegasus": Architecture("pegasus", crossed(), SEQ2SEQ),
    "m2m-100": Architecture("m2m_100", crossed(), SEQ2SEQ),
    "blenderbot": Architecture("blenderbot", crossed(), SEQ2SEQ),
    "roberta": Architecture("roberta", bert(), MASKED),
    "xlm-roberta": Architecture("xlm-roberta", bert(), MASKED),
    "distilbert": Architecture("distilbert", {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4,
                                              "max_position_embeddings": 128}, MASKED),
    "albert": Architecture("albert", bert(embedding_size=32), MASKED),
    "electra": Architecture("electra", bert(embedding_size=32), MASKED),
    "deberta-v2": Architecture("deberta-v2", bert(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16), MASKED),
    "mpnet": Architecture("mpnet", bert(), MASKED),
    "modernbert": Architecture("modernbert", bert(global_attn_every_n_layers=2, local_attention=8, cls_token_id=1, sep_token_id=2),
                               MASKED),
}


def smollm2() -> Any:
    """The module examples/smollm2/export.py."""
    import importlib

    sys.path.append(str(EXAMPLE))
    return importlib.import_module("export")


def read_smollm2() -> Any:
    from gguf import GGUFReader

    return GGUFReader(smollm2().find_gguf())


def make(name: str) -> Any:
    """A model with seeded weights, drawn wide so that greedy tokens vary and no two logits are close."""
    import torch
    import transformers

    architecture = ARCHITECTURES[name]
    if name == SMOLLM2:
        return smollm2().load_model(read_smollm2())
    common = {"vocab_size": VOCAB, "initializer_range": 0.2, "init_std": 0.2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.AutoConfig.for_model(architecture.kind, **(common | architecture.config))
    torch.manual_seed(11)
    model = getattr(transformers, AUTO[architecture.task]).from_config(config).eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.dim() == 1:  # norms and biases: an exporter shares equal ones, and a test could not tell them apart
            weight.add_(0.2 * torch.randn_like(weight))
    return model


def mxfp4(weight: Any) -> tuple[Any, Any]:
    """Blocks of 32 numbers of 4 bits, two to a byte, and a power of two for each block (OCP's MXFP4) of [expert, in, out], as the
    checkpoints of gpt-oss have them: [expert, out, in / 32, 16] and [expert, out, in / 32]."""
    import torch

    blocks = weight.detach().transpose(1, 2).unflatten(-1, (-1, 32)).float()
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1).clamp(min=2.0**-100))) - 2
    scaled = blocks / torch.exp2(exponent)[..., None]
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = (scaled.abs()[..., None] - magnitudes).abs().argmin(-1) + 8 * (scaled < 0)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8), (exponent + 127).to(torch.uint8)


def add_mxfp4(folder: str) -> None:
    """Adds the experts of gpt-oss in the form of its checkpoints, from which genai's builder quantises them."""
    from safetensors.torch import load_file, save_file

    path = Path(folder) / "model.safetensors"
    tensors = load_file(path)
    for key in [k for k in tensors if k.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        tensors[f"{key}_blocks"], tensors[f"{key}_scales"] = mxfp4(tensors[key])
    save_file(tensors, path, {"format": "pt"})


def save(name: str, folder: str) -> Any:
    """The folder that an exporter reads: config.json, the weights, a tokenizer of single bytes."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    model = make(name)
    model.config.architectures = [type(model).__name__]
    model.save_pretrained(folder)
    if ARCHITECTURES[name].kind == "gpt_oss":
        add_mxfp4(folder)
    if name == SMOLLM2:
        smollm2().write_tokenizer(read_smollm2(), Path(folder))
        return model
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<pad>", "<s>", "</s>", "<unk>", *alphabet]
    words += [f"<extra{i}>" for i in range(VOCAB - len(words))]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
                                         unk_token="<unk>").save_pretrained(folder)
    if ARCHITECTURES[name].task == SPEECH:
        transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
    return model
