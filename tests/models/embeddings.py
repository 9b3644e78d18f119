"""Writes small models of embeddings, and the vectors that sentence-transformers makes of texts with them.

Usage: embeddings.py [NAME ...]       all, or those named, into embeddings/NAME beside this file

Weights are random. Each folder is one of sentence-transformers: modules.json, the pooling's config.json, config.json, tokenizer.json, and
onnx/model.onnx. vectors.json holds texts, their token numbers and their vectors. Needs the packages of requirements.txt, and
sentence-transformers.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

import export

HERE = Path(__file__).parent / "embeddings"
WORDS = "the a cat dog sat on mat and ran to house big small red sun it was not so far away from sea one two three".split()
TEXTS = ["The cat sat on the mat.", "a dog", "The big red sun was not so far away from the sea, and it ran to one small house", "unknown words"]


@dataclass(frozen=True)
class Model:
    """`pooled`: the graph gives sentence_embedding too, as optimum exports sentence-transformers."""

    kind: str
    config: dict[str, Any]
    pooling: str
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    normalises: bool = False
    pooled: bool = False
    more: dict[str, Any] = field(default_factory=dict)


BERT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 40}
LLAMA = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 64}
TYPES = ("input_ids", "attention_mask", "token_type_ids")
MODELS = {
    "bert-mean": Model("bert", BERT, "mean", TYPES, normalises=True),
    "bert-first": Model("bert", BERT, "cls", TYPES),
    "bert-pooled": Model("bert", BERT, "max", TYPES, normalises=True, pooled=True),
    "llama-last": Model("llama", LLAMA, "lasttoken", normalises=True, more={"use_cache": False}),
}


def tokenizer() -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made = Tokenizer(models.WordPiece({w: i for i, w in enumerate(special + WORDS + [".", ",", "##s"])}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")


class Flat(nn.Module):
    """Tensors in and out. Without padding the pooled form needs no mask."""

    def __init__(self, model: nn.Module, of: Model):
        super().__init__()
        self.model, self.of = model, of

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        hidden = self.model(**dict(zip(self.of.inputs, tensors)), **self.of.more).last_hidden_state
        if not self.of.pooled:
            return (hidden,)
        pooled = hidden.amax(dim=1)
        return hidden, pooled / pooled.norm(dim=1, keepdim=True)


def write_onnx(model: nn.Module, of: Model, path: Path) -> None:
    ids = torch.randint(4, 20, (3, 5))
    every = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    outputs = ["token_embeddings", "sentence_embedding"] if of.pooled else ["last_hidden_state"]
    shapes = tuple({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC} for _ in of.inputs)
    torch.onnx.export(Flat(model, of).eval(), tuple(every[n] for n in of.inputs), str(path), input_names=list(of.inputs), output_names=outputs,
                      opset_version=18, dynamo=True, dynamic_shapes=(shapes,), external_data=False, verbose=False)
    export.strip(path)


def write(name: str, of: Model, folder: Path) -> None:
    words = tokenizer()
    config = AutoConfig.for_model(of.kind, vocab_size=len(words), initializer_range=0.25, pad_token_id=0, **of.config)
    module = export.make(lambda: AutoModel.from_config(config, attn_implementation="sdpa"))
    with tempfile.TemporaryDirectory() as plain:
        module.save_pretrained(plain)
        words.save_pretrained(plain)
        parts = [Transformer(plain), Pooling(of.config["hidden_size"], pooling_mode=of.pooling), *([Normalize()] if of.normalises else [])]
        whole = SentenceTransformer(modules=parts, device="cpu")
        whole.save(str(folder), create_model_card=False)
    vectors = [whole.encode(text).tolist() for text in TEXTS]
    ids = [words(text)["input_ids"] for text in TEXTS]
    for unused in ("model.safetensors", "config_sentence_transformers.json", "special_tokens_map.json", "README.md"):
        (folder / unused).unlink(missing_ok=True)
    (folder / "onnx").mkdir()
    write_onnx(module, of, folder / "onnx" / "model.onnx")
    rounded = [[float(f"{x:.8g}") for x in vector] for vector in vectors]
    (folder / "vectors.json").write_text(json.dumps({"texts": TEXTS, "tokens": ids, "vectors": rounded}) + "\n")
    print(name, sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()), "bytes")


def main() -> None:
    warnings.filterwarnings("ignore")
    for name in sys.argv[1:] or MODELS:
        shutil.rmtree(HERE / name, ignore_errors=True)
        (HERE / name).mkdir(parents=True)
        write(name, MODELS[name], HERE / name)


if __name__ == "__main__":
    main()
