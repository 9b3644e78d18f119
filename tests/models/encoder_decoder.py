"""Exports small encoder-decoder models with optimum, whisper-genai with onnxruntime-genai's builder, and records ONNX Runtime's greedy tokens.

Usage: encoder_decoder.py [NAME ...]      all models, or those named, into encoder-decoder/NAME beside this file

Each folder gets encoder_model.onnx, decoder_model_merged.onnx, the settings that optimum writes, and tokens.json: for batches of
sources (of unequal lengths, padded on the right) the tokens of each sequence. The encoder of a model of speech reads zeros. The
reference runs the encoder's file once and the decoder's file without a past over the whole text in each step. Weights are drawn
again until no two logits are so close that keys and values in f16 could swap them. Needs ../exporters/requirements.txt, or
requirements5.txt for whisper-genai.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import transformers

STEPS = 8
SOURCES = ([[5, 6, 7, 8, 2]], [[15, 6], [9, 31, 32, 33, 3, 35, 2], [20, 21, 22, 2]])
COMMON = {"vocab_size": 48, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "init_std": 0.4,
          "initializer_range": 0.4, "forced_eos_token_id": None}
BART = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 32}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "relative_attention_num_buckets": 8,
      "relative_attention_max_distance": 12, "initializer_factor": 6.0}
WHISPER = BART | {"num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 32, "begin_suppress_tokens": None}
MODELS = {"t5": ("t5", T5), "mt5": ("mt5", T5 | {"feed_forward_proj": "gated-gelu"}),
          "bart": ("bart", BART | {"forced_bos_token_id": 7}), "whisper": ("whisper", WHISPER),
          "whisper-genai": ("whisper", WHISPER | {"encoder_layers": 2})}  # the builder takes both depths for one


class TooClose(Exception):
    """The largest two logits of a step differ too little to tell models apart."""


def save(name: str, folder: Path, seed: int) -> None:
    kind, settings = MODELS[name]
    config = transformers.AutoConfig.for_model(kind, **(COMMON | settings))
    torch.manual_seed(seed)
    auto = transformers.AutoModelForSpeechSeq2Seq if kind == "whisper" else transformers.AutoModelForSeq2SeqLM
    model = auto.from_config(config).eval().requires_grad_(False)
    for weight in model.parameters():
        if weight.dim() == 1:
            weight.add_(0.2 * torch.randn_like(weight))
    model.config.architectures = [type(model).__name__]
    model.save_pretrained(folder)
    if kind == "whisper":
        transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def generate(folder: Path, inputs: dict[str, np.ndarray], start: list[int]) -> list[list[int]]:
    encoder, decoder = session(folder / "encoder_model.onnx"), session(folder / "decoder_model.onnx")
    states = encoder.run(None, inputs)[0]
    text = np.array([start] * len(states), np.int64)
    given = {"encoder_hidden_states": states, "encoder_attention_mask": inputs.get("attention_mask")}
    names = {i.name for i in decoder.get_inputs()}
    for _ in range(STEPS):
        fed = {name: value for name, value in (given | {"input_ids": text}).items() if name in names}
        logits = decoder.run(None, fed)[0][:, -1]
        best = np.sort(logits, -1)
        if (best[:, -1] - best[:, -2]).min() < 2e-3 * np.abs(logits).max():
            raise TooClose
        text = np.concatenate([text, logits.argmax(-1)[:, None]], 1)
    return text[:, len(start):].tolist()


def generate_genai(folder: Path, features: np.ndarray, start: list[int]) -> list[list[int]]:
    """The encoder computes the keys and values that the decoder takes as a past beside its own."""
    encoder, decoder = session(folder / "encoder.onnx"), session(folder / "decoder.onnx")
    made = dict(zip([o.name for o in encoder.get_outputs()], encoder.run(None, {"audio_features": features})))
    given = {n.replace("present", "past"): v for n, v in made.items() if "cross" in n}
    given |= {i.name: np.zeros((1, 2, 0, 8), np.float32) for i in decoder.get_inputs() if "self" in i.name}
    tokens, ids = [], np.array([start], np.int32)
    for _ in range(STEPS):
        out = dict(zip([o.name for o in decoder.get_outputs()], decoder.run(None, given | {"input_ids": ids})))
        best = np.sort(out["logits"][0, -1])
        if best[-1] - best[-2] < 2e-3 * np.abs(best).max():
            raise TooClose
        tokens.append(int(out["logits"][0, -1].argmax()))
        ids = np.array([tokens[-1:]], np.int32)
        given |= {n.replace("present", "past"): v for n, v in out.items() if "self" in n}
    return [tokens]


def export_genai(source: Path, folder: Path) -> None:
    from onnxruntime_genai.models import builder
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(48)}, "w3"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w2").save_pretrained(source)
    where = (str(source), str(source), str(folder), "fp32", "cpu", str(folder / "cache"))
    builder.create_model(*where, **builder.parse_extra_options(*where, []))


def make_genai(source: Path, folder: Path, target: Path) -> None:
    export_genai(source, folder)
    tokens = text(generate_genai(folder, np.zeros((1, 80, 3000), np.float32), [1]))
    target.mkdir(parents=True, exist_ok=True)
    for file in (*folder.glob("*.onnx*"), folder / "genai_config.json"):
        shutil.copy(file, target)
    (target / "tokens.json").write_text(json.dumps({"prompts": [""], "tokens": [tokens]}, indent=1) + "\n")


def padded(sources: list[list[int]]) -> dict[str, np.ndarray]:
    longest = max(map(len, sources))
    return {"input_ids": np.array([s + [0] * (longest - len(s)) for s in sources], np.int64),
            "attention_mask": np.array([[1] * len(s) + [0] * (longest - len(s)) for s in sources], np.int64)}


def text(sources: list[list[int]]) -> str:
    return ";".join(",".join(map(str, s)) for s in sources)


def make(name: str, target: Path, seed: int) -> None:
    task = "automatic-speech-recognition" if name == "whisper" else "text2text-generation"
    with tempfile.TemporaryDirectory() as work:
        source, folder = Path(work) / "source", Path(work) / "out"
        save(name, source, seed)
        if name == "whisper-genai":
            return make_genai(source, folder, target)
        from optimum.exporters.onnx import main_export

        main_export(str(source), folder, task=task + "-with-past", device="cpu", do_validation=False)
        start = [1] + ([7] if name == "bart" else [])
        if name == "whisper":
            zeros = {"input_features": np.zeros((1, 80, 3000), np.float32)}
            cases = {"prompts": [""], "tokens": [text(generate(folder, zeros, start))]}
        else:
            cases = {"prompts": [text(s) for s in SOURCES], "tokens": [text(generate(folder, padded(s), start)) for s in SOURCES]}
        target.mkdir(parents=True, exist_ok=True)
        for file in ("encoder_model.onnx", "decoder_model_merged.onnx", "config.json", "generation_config.json"):
            shutil.copy(folder / file, target / file)
        (target / "tokens.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        for seed in itertools.count(17):
            with contextlib.suppress(TooClose):
                make(wanted, Path(__file__).parent / "encoder-decoder" / wanted, seed)
                break
