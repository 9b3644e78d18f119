"""Saves small random models with LoRA adapters, and the tokens and logits that PEFT gives after merging them.

Usage: lora.py OUT [NAME ...]       all cases, or those that are named, into folders of OUT

OUT/NAME/ gets model/ (config.json, model.safetensors), a folder for each adapter, and tokens.json: `lora` has the values
of --lora, `prompts` the prompts, and `tokens` for each the greedy tokens of merge_and_unload(), computed in f32; `base` are those
without adapters. Needs torch, transformers and peft.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from huggingface import COUNT, PROMPTS, VOCAB, like_llama

ATTENTION = ["q_proj", "v_proj"]
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64}
# NAME: model type, configuration, and for each adapter: settings of LoraConfig, the scale of --lora
CASES: dict[str, tuple[str, dict[str, Any], list[tuple[dict[str, Any], float]]]] = {
    "llama": ("llama", like_llama(), [({"r": 4, "lora_alpha": 8, "target_modules": ATTENTION}, 1.0)]),
    "f16": ("llama", like_llama(num_hidden_layers=1), [({"r": 4, "lora_alpha": 8, "target_modules": ALL}, 1.0)]),
    "bf16": ("llama", like_llama(num_hidden_layers=1), [({"r": 4, "lora_alpha": 8, "target_modules": ALL}, 1.0)]),
    "two": ("llama", like_llama(), [({"r": 4, "lora_alpha": 8, "target_modules": ALL}, 0.5),
                                    ({"r": 2, "lora_alpha": 3, "target_modules": ["o_proj"]}, -1.0)]),
    "rslora": ("mistral", like_llama(sliding_window=None),
               [({"r": 9, "lora_alpha": 6, "use_rslora": True, "target_modules": ALL}, 1.0)]),
    "patterns": ("qwen2", like_llama(), [({"r": 4, "lora_alpha": 8, "target_modules": ALL, "rank_pattern": {
        "layers.1.mlp.up_proj": 2}, "alpha_pattern": {"q_proj": 2}, "layers_to_transform": [1]}, 1.0)]),
    "regex": ("gemma2", like_llama(head_dim=8), [({"r": 2, "lora_alpha": 4, "target_modules": r".*\.(up|down)_proj"}, 1.0)]),
    "head": ("llama", like_llama(), [({"r": 2, "lora_alpha": 6, "target_modules": ["embed_tokens", "lm_head", "k_proj"]},
                                      1.0)]),
    "saved": ("llama", like_llama(), [({"r": 2, "lora_alpha": 6, "target_modules": ["k_proj"],
                                        "modules_to_save": ["embed_tokens", "lm_head"]}, 1.0)]),
    "gpt2": ("gpt2", GPT2, [({"r": 4, "lora_alpha": 8, "fan_in_fan_out": True,
                              "target_modules": ["c_attn", "c_proj", "c_fc"]}, 1.0)]),
    "phi3": ("phi3", like_llama(original_max_position_embeddings=128),
             [({"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}, 1.0)]),
}
# The types of base weights that are not f32; a sum is rounded to the type, and PEFT keeps adapters in f32.
TYPES = {"f16": "float16", "bf16": "bfloat16"}


def fill(model: Any, kind: str, trained: bool) -> None:
    """Random weights; of a model with adapters only what they train."""
    import torch

    for key, value in model.named_parameters():
        if trained and not value.requires_grad:
            continue
        if value.dim() == 1:
            centre = 0.0 if key.endswith("bias") or kind.startswith("gemma") else 1.0
            value.data = centre + 0.3 * torch.randn_like(value)
        else:
            wide = 0.2 if "embed" in key and "lora" not in key else 2.0 / value.shape[-1] ** 0.5
            value.data = torch.randn_like(value) * (wide if not trained or "lora" not in key else 0.5)
    model.tie_weights() if not trained else None


def greedy(model: Any) -> list[list[int]]:
    import torch

    tokens = []
    with torch.no_grad():
        for prompt in PROMPTS:
            ids = list(prompt)
            for _ in range(COUNT):
                ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
            tokens.append(ids[len(prompt):])
    return tokens


def save(name: str, folder: Path) -> None:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, config, adapters = CASES[name]
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, vocab_size=VOCAB, **config)).eval()
    fill(model, kind, trained=False)
    dtype = getattr(torch, TYPES.get(name, "float32"))
    model.to(dtype).save_pretrained(folder / "model")
    (folder / "model/generation_config.json").unlink(missing_ok=True)
    texts = []
    for i, (settings, scale) in enumerate(adapters):
        plain = AutoModelForCausalLM.from_pretrained(folder / "model")
        tuned = get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", **settings))
        fill(tuned, kind, trained=True)
        tuned.save_pretrained(folder / f"adapter{i}")
        (folder / f"adapter{i}/README.md").unlink(missing_ok=True)
        texts.append(f"adapter{i}" + ("" if scale == 1 else f",scale={scale}"))

    def load() -> Any:
        loaded = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=dtype).eval()
        loaded.set_attn_implementation("eager")
        return loaded

    base, merged = greedy(load().float()), load()
    for i, (_, scale) in enumerate(adapters):
        merged = PeftModel.from_pretrained(merged, folder / f"adapter{i}")
        for module in merged.modules():
            if isinstance(getattr(module, "scaling", None), dict):
                module.scaling = {key: value * scale for key, value in module.scaling.items()}
        merged = merged.merge_and_unload()
    tokens = greedy(merged.float())
    assert tokens != base, "the adapter changes nothing"
    text = ",\n ".join(f'"{key}": {json.dumps(value)}' for key, value in
                       (("lora", texts), ("prompts", PROMPTS), ("tokens", tokens), ("base", base)))
    (folder / "tokens.json").write_text(f"{{\n {text}\n}}\n")


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or CASES:
        save(name, Path(sys.argv[1]) / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
