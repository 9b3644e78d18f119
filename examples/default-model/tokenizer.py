"""Trains the byte-level BPE vocabulary (GPT-2's pattern) and writes tokenizer.json and tokenizer_config.json.

Usage: tokenizer.py --corpus DIR --out DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from model import Config

END = "<|endoftext|>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    config = Config()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=config.vocab, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    lines = (args.corpus / "train.jsonl").read_text().splitlines()[:10000]
    tokenizer.train_from_iterator((json.loads(line) for line in lines), trainer)
    assert tokenizer.get_vocab_size() == config.vocab
    tokenizer.save(str(args.out / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "bos_token": END, "unk_token": END,
                "add_bos_token": False, "add_prefix_space": False, "model_max_length": config.context}
    (args.out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main()
