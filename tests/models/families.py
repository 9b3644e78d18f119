"""Exports small random models of many families, each from its own Hugging Face implementation.

Usage: families.py OUT [NAME ...]       all cases, or those with names that begin with NAME, into folders of OUT
       families.py --list

A case is FAMILY-EXPORTER[-past]: "gemma2-script-past" is Gemma 2 by the TorchScript exporter with past_key_values. Opsets 13 to
20 and both forms of attention in transformers ("eager" and "sdpa") are spread over the cases. OUT/CASE/ gets model.onnx,
test_data_set_0/ (a prompt), with a past also test_data_set_1/ (one more token), both of batch 2, with ONNX Runtime's answers, and
tokens.json (greedy tokens of ONNX Runtime; checked against transformers' own generate) where the model generates.
The small set beside this file was chosen from them. Needs the packages of requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq,
                          DynamicCache, EncoderDecoderCache, PreTrainedModel)
from transformers.modeling_outputs import BaseModelOutput

import export
import oracle
from export import VOCAB

SOURCE = 7  # states of the encoder that a cross attention sees


@dataclass(frozen=True)
class Family:
    """`config` goes to transformers' configuration of `kind`; `model` is which of its classes is meant."""

    kind: str
    config: dict[str, Any]
    model: type = AutoModelForCausalLM
    inputs: tuple[str, ...] = ("attention_mask", "position_ids")


def llama_like(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "max_position_embeddings": 128} | more


MASK = ("attention_mask",)
FAMILIES = {
    "llama": Family("llama", llama_like(head_dim=20, num_attention_heads=6, num_key_value_heads=3, attention_bias=True)),
    "mistral": Family("mistral", llama_like(sliding_window=5, head_dim=12)),
    "qwen2": Family("qwen2", llama_like(hidden_size=60, num_attention_heads=5, num_key_value_heads=1)),
    "qwen3": Family("qwen3", llama_like(head_dim=16, num_attention_heads=6)),
    "phi": Family("phi", llama_like(num_key_value_heads=4, partial_rotary_factor=0.5)),
    "phi3": Family("phi3", llama_like(partial_rotary_factor=1.0, original_max_position_embeddings=128)),
    "phi4": Family("phi3", llama_like(hidden_size=64, partial_rotary_factor=0.75, original_max_position_embeddings=128)),
    "gemma": Family("gemma", llama_like(head_dim=16, num_key_value_heads=1)),
    "gemma2": Family("gemma2", llama_like(head_dim=16, sliding_window=6, query_pre_attn_scalar=24, attn_logit_softcapping=4.0,
                                          final_logit_softcapping=9.0, tie_word_embeddings=False)),
    "gemma3": Family("gemma3_text", llama_like(head_dim=16, sliding_window=6, query_pre_attn_scalar=20,
                                               layer_types=["sliding_attention", "full_attention"],
                                               tie_word_embeddings=False)),
    "gpt2": Family("gpt2", {"n_embd": 45, "n_layer": 2, "n_head": 5, "n_positions": 128}),
    "gpt-neox": Family("gpt_neox", llama_like(rotary_pct=0.5)),
    "opt": Family("opt", {"hidden_size": 48, "ffn_dim": 100, "num_hidden_layers": 2, "num_attention_heads": 3,
                          "max_position_embeddings": 128, "word_embed_proj_dim": 48}),
    "opt-post": Family("opt", {"hidden_size": 48, "ffn_dim": 100, "num_hidden_layers": 2, "num_attention_heads": 3,
                               "max_position_embeddings": 128, "word_embed_proj_dim": 32, "do_layer_norm_before": False}),
    "bert": Family("bert", {"hidden_size": 48, "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 3},
                   AutoModelForMaskedLM, ("attention_mask", "token_type_ids")),
    "bert-decoder": Family("bert", {"hidden_size": 48, "intermediate_size": 100, "num_hidden_layers": 2, "is_decoder": True,
                                    "num_attention_heads": 3}),
    "whisper-decoder": Family("whisper", {"d_model": 48, "decoder_layers": 2, "decoder_attention_heads": 3, "encoder_layers": 1,
                                          "decoder_ffn_dim": 100, "encoder_attention_heads": 3, "encoder_ffn_dim": 16,
                                          "max_target_positions": 128, "num_mel_bins": 8, "max_source_positions": 16,
                                          "decoder_start_token_id": 1}, AutoModelForSpeechSeq2Seq, ()),
    # beyond what raising must know
    "bloom": Family("bloom", {"hidden_size": 48, "n_layer": 2, "n_head": 3}, inputs=MASK),
    "mpt": Family("mpt", {"d_model": 48, "n_heads": 4, "n_layers": 2, "max_seq_len": 128}, inputs=MASK),
    "codegen": Family("codegen", {"n_embd": 48, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 128, "n_ctx": 128}),
    "gptj": Family("gptj", {"n_embd": 48, "n_layer": 2, "n_head": 4, "rotary_dim": 8, "n_positions": 128}),
    "gpt-neo": Family("gpt_neo", {"hidden_size": 48, "num_layers": 2, "attention_types": [[["global", "local"], 1]],
                                  "num_heads": 4, "window_size": 6, "max_position_embeddings": 128}),
    "gpt-bigcode": Family("gpt_bigcode", {"n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "falcon": Family("falcon", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": False}),
    "falcon-new": Family("falcon", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
                                    "new_decoder_architecture": True, "alibi": False}),
    "stablelm": Family("stablelm", llama_like(hidden_size=64, num_key_value_heads=4, partial_rotary_factor=0.25, use_qkv_bias=True)),
    "starcoder2": Family("starcoder2", llama_like(sliding_window=7)),
    "cohere": Family("cohere", llama_like(logit_scale=0.25, use_qk_norm=True)),
    "olmo": Family("olmo", llama_like(clip_qkv=2.0)),
    "olmo2": Family("olmo2", llama_like()),
    "granite": Family("granite", llama_like(embedding_multiplier=6.0, residual_multiplier=0.3, attention_multiplier=0.2,
                                            logits_scaling=2.0)),
    "smollm3": Family("smollm3", llama_like(no_rope_layers=[1, 0])),
    "glm4": Family("glm4", llama_like(head_dim=12, partial_rotary_factor=0.5)),
    "nemotron": Family("nemotron", llama_like(head_dim=12, partial_rotary_factor=0.5)),
    "t5-decoder": Family("t5", {"d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 2, "num_heads": 4}, AutoModelForSeq2SeqLM, ()),
    "bart-decoder": Family("bart", {"d_model": 48, "encoder_layers": 1, "encoder_ffn_dim": 16, "encoder_attention_heads": 3,
                                    "decoder_layers": 2, "decoder_ffn_dim": 100, "decoder_attention_heads": 3,
                                    "max_position_embeddings": 128}, AutoModelForSeq2SeqLM, ()),
}


@dataclass(frozen=True)
class Case:
    family: str
    dynamo: bool
    past: bool
    opset: int
    attention: str

    @property
    def name(self) -> str:
        return f"{self.family}-{'dynamo' if self.dynamo else 'script'}{'-past' if self.past else ''}"


def cases() -> Iterator[Case]:
    """Both exporters with and without a past; the dynamo exporter begins at opset 18."""
    for i, (name, family) in enumerate(FAMILIES.items()):
        for j, (dynamo, past) in enumerate([(False, True), (False, False), (True, True), (True, False)]):
            if past and family.model is AutoModelForMaskedLM:
                continue
            opset = 18 + (i + j) % 3 if dynamo else 13 + (2 * i + j) % 8
            if not dynamo and opset == 13 and family.kind == "t5":
                opset = 14
            yield Case(name, dynamo, past, opset, "sdpa" if (i + j) % 2 and opset >= 14 else "eager")


@dataclass
class Model:
    """A family's module, and how its tensors are named and shaped."""

    case: Case
    module: PreTrainedModel = field(init=False)

    def __post_init__(self) -> None:
        config = AutoConfig.for_model(self.family.kind, **({"vocab_size": VOCAB, "initializer_range": 0.25, "pad_token_id": None,
                                                            "bos_token_id": 0, "eos_token_id": 0} | self.family.config))
        build = lambda: self.family.model.from_config(config, attn_implementation=self.case.attention)
        try:
            self.module = export.make(build)
        except ValueError:  # no such form of attention
            self.module = export.make(lambda: self.family.model.from_config(config, attn_implementation="eager"))

    @property
    def family(self) -> Family:
        return FAMILIES[self.case.family]

    @property
    def crosses(self) -> bool:
        return self.family.model in (AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq)

    @property
    def generates(self) -> bool:
        return self.family.model is AutoModelForCausalLM

    def own_inputs(self) -> tuple[str, ...]:
        """Beside input_ids. The dynamo exporter names sizes per input; without a past positions go without saying."""
        plain = self.case.dynamo and not self.case.past
        return tuple(n for n in self.family.inputs if not plain or n != "position_ids")

    def inputs(self) -> list[str]:
        """All names in order. A cross attention takes the encoder's states, or with a past its keys and values of them."""
        kinds = ("decoder.key", "decoder.value", "encoder.key", "encoder.value") if self.crosses else ("key", "value")
        past = [f"past_key_values.{i}.{kind}" for i in range(len(self.caches())) for kind in kinds] if self.case.past else []
        states = ["encoder_hidden_states"] if self.crosses else []
        return ["input_ids", *self.own_inputs(), *states, *past]

    def outputs(self) -> list[str]:
        return ["logits", *(n.replace("past_key_values", "present") for n in self.inputs() if n.startswith("past") and "encoder" not in n)]

    def caches(self) -> list[tuple[tuple[int, ...], ...]]:
        """Per layer the shapes of keys and values, of batch 2 and a prompt of 3; for a cross attention those of the source too."""
        with torch.no_grad():
            out = self.run(self.example(2, 3, None), DynamicCache())
        cache = out.past_key_values
        if self.crosses:
            return [(tuple(d.keys.shape), tuple(d.values.shape), tuple(e.keys.shape), tuple(e.values.shape))
                    for d, e in zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers)]
        return [(tuple(layer.keys.shape), tuple(layer.values.shape)) for layer in cache.layers]

    def example(self, batch: int, new: int, past: int | None) -> dict[str, Tensor]:
        """Inputs of the given sizes; no cache when `past` is None."""
        torch.manual_seed(12)
        before = past or 0
        width = getattr(self.module.config, "d_model", None)
        every = {"attention_mask": torch.ones(batch, before + new, dtype=torch.long),
                 "position_ids": torch.arange(before, before + new)[None].repeat(batch, 1),
                 "token_type_ids": torch.arange(new)[None].repeat(batch, 1) % 2}
        values = {"input_ids": torch.randint(1, VOCAB, (batch, new))} | {n: every[n] for n in self.own_inputs()}
        if self.crosses:
            values["encoder_hidden_states"] = torch.randn(batch, SOURCE, width)
        if past is not None:
            names = [n for n in self.inputs() if n.startswith("past")]
            shapes = [s for layer in self.caches() for s in layer]
            for name, shape in zip(names, shapes, strict=True):
                length = SOURCE if "encoder" in name else past
                values[name] = torch.randn(batch, *shape[1:-2], length, shape[-1])
        return values

    def run(self, values: dict[str, Tensor], cache: DynamicCache | EncoderDecoderCache | None) -> Any:
        values = {n: v for n, v in values.items() if not n.startswith("past")}
        ids, states = values.pop("input_ids"), values.pop("encoder_hidden_states", None)
        if self.crosses:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache()) if type(cache) is DynamicCache else cache
            if cache is None:  # without a mask Hugging Face looks for packed sequences, with operators that ONNX lacks
                values["decoder_attention_mask"] = torch.ones_like(ids)
            # The encoder's states are not looked at once their keys and values are there.
            return self.module(decoder_input_ids=ids, encoder_outputs=BaseModelOutput(states), past_key_values=cache,
                               use_cache=cache is not None, **values)
        if self.generates:
            return self.module(input_ids=ids, past_key_values=cache, use_cache=cache is not None, **values)
        return self.module(input_ids=ids, **values)


class Flat(nn.Module):
    """Tensors in and out, in the order of Model.inputs and Model.outputs, instead of Hugging Face's cache objects."""

    def __init__(self, model: Model):
        super().__init__()
        self.module, self.model, self.names = model.module, model, model.inputs()

    def cache(self, past: list[Tensor]) -> DynamicCache | EncoderDecoderCache | None:
        if not self.model.case.past:
            return None
        if self.model.crosses:
            own = DynamicCache(list(zip(past[::4], past[1::4])))
            return EncoderDecoderCache(own, DynamicCache(list(zip(past[2::4], past[3::4]))))
        return DynamicCache(list(zip(past[::2], past[1::2])))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        values = dict(zip(self.names, tensors))
        cache = self.cache([v for n, v in values.items() if n.startswith("past")])
        if self.model.generates and not self.model.case.past:
            values.setdefault("attention_mask", torch.ones_like(values["input_ids"]))
        out = self.model.run(values, cache)
        if cache is None:
            return (out.logits,)
        layers = out.past_key_values.self_attention_cache.layers if self.model.crosses else out.past_key_values.layers
        return out.logits, *(t for layer in layers for t in (layer.keys, layer.values))


def axes_of(name: str) -> dict[int, str]:
    if name.startswith(("past", "present")):
        return {0: "batch"} if "encoder" in name else {0: "batch", 2: "past" if name.startswith("past") else "total"}
    if name == "encoder_hidden_states":
        return {0: "batch"}
    return {0: "batch", 1: "total" if name == "attention_mask" else "sequence"}


def write_model(model: Model, path: Path) -> None:
    flat, case = Flat(model).eval(), model.case
    values = model.example(3, 5, 7 if case.past else None)
    inputs, outputs = model.inputs(), model.outputs()
    if case.dynamo:
        shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in axes_of(n)} for n in inputs)
        settings = {"dynamo": True, "dynamic_shapes": (shapes,), "external_data": False, "verbose": False}
    else:
        settings = {"dynamo": False, "dynamic_axes": {n: axes_of(n) for n in inputs + outputs}}
    torch.onnx.export(flat, tuple(values[n] for n in inputs), str(path), input_names=inputs, output_names=outputs,
                      opset_version=case.opset, **settings)
    export.strip(path)


def write_data(model: Model, folder: Path) -> None:
    """A prompt of 9 tokens, which is longer than the windows above; with a past also one more token."""
    sets = [(9, 0), (1, 10)] if model.case.past else [(9, None)]
    for i, (new, past) in enumerate(sets):
        values = model.example(2, new, past)
        with torch.no_grad():
            want = Flat(model)(*values.values())[0].numpy()
        session = oracle.Oracle(folder / "model.onnx").session
        known = {n.name for n in session.get_inputs()}  # an exporter drops what is not used
        arrays = {n: v.numpy() for n, v in values.items() if n in known}
        got = session.run(["logits"], arrays)[0]
        assert np.allclose(got, want, rtol=1e-3, atol=1e-4), f"ONNX Runtime differs by {np.abs(got - want).max()}"
        oracle.write_test_data(folder / "model.onnx", folder / f"test_data_set_{i}", list(arrays.values()))


def check_generation(model: Model, folder: Path) -> None:
    """transformers' own generate says the same tokens."""
    lists = json.loads((folder / "tokens.json").read_text())
    for prompt, tokens in zip(lists["prompts"], lists["tokens"]):
        ids = torch.tensor([prompt])
        made = model.module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=len(tokens), do_sample=False,
                                     eos_token_id=None, pad_token_id=0)[0, len(prompt) :].tolist()
        assert made == tokens, f"transformers generates {made}, ONNX Runtime {tokens}"


def write(case: Case, out: Path) -> None:
    model, folder = Model(case), out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    write_model(model, folder / "model.onnx")
    write_data(model, folder)
    if model.generates:
        oracle.write_tokens(folder / "model.onnx", folder)
        check_generation(model, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = [c for c in cases() if not args.names or any(c.name == n or c.name.startswith(n + "-") for n in args.names)]
    if args.list or not args.out:
        print(*(f"{c.name} opset {c.opset} {c.attention}" for c in chosen), sep="\n")
        return 0
    warnings.filterwarnings("ignore")
    failed = 0
    for case in chosen:
        try:
            write(case, args.out)
        except Exception as error:  # the exporters do not manage every family; the rest goes on
            failed += 1
            shutil.rmtree(args.out / case.name, ignore_errors=True)
            print(f"{case.name}: {type(error).__name__}: {str(error).strip().splitlines()[0][:160]}", file=sys.stderr)
    print(f"{len(chosen) - failed} of {len(chosen)} cases written")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
