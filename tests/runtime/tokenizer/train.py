#!/usr/bin/env python3
"""Trains the small tokenizers of the tests on the texts of strings.py: one in SentencePiece's style with byte fallback
(Llama 2), one byte-level after Llama 3's pattern with a template and added tokens of every kind."""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import strings

HERE = pathlib.Path(__file__).parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def corpus():
    parts = strings.fragments()
    return [strings.make(i, parts) for i in range(100000, 102000)]


def save(tokenizer, name):
    (HERE / name).write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=True) + "\n")


def sentencepiece():
    options = dict(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    trained = Tokenizer(models.BPE(**options))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    control = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trained.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=700, limit_alphabet=200,
                                                              special_tokens=control, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(model["vocab"], merges, **options))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in control[:3]])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B",
                                                             special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    save(tokenizer, "sentencepiece.json")


def split():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"],
        show_progress=False))
    tokenizer.add_tokens([AddedToken("little", single_word=True, lstrip=True, normalized=True),
                          AddedToken("C++", rstrip=True, normalized=False), AddedToken("<|im_", normalized=False)])
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False),
         processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B", special_tokens=[("<s>", 0), ("</s>", 1)])])
    save(tokenizer, "split.json")


sentencepiece()
split()
