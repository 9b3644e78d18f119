#!/usr/bin/env python3
"""Trains one small tokenizer of each kind that models come with, in the manner of the family that names it.

    kinds.py --compare BUILD/tests/runtime/tokenizer/tokenize   a table: equal to PyPI `tokenizers`, refused, or different
    kinds.py --write                                            the fixtures of test_tokenizer_reference.c, in kinds/

The texts are those of strings.py; training is deterministic. It needs tokenizers and sentencepiece (whose compiled
normalization rules the Unigram kinds carry).
"""
import argparse
import collections
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import compare
import strings
from families import BLOOM, CLIP, DEEPSEEK, DEEPSEEK_CJK, HUNYUAN, LLAMA3, O200K, QWEN

HERE = pathlib.Path(__file__).parent
COUNT = 200
SPECIAL = ["<unk>", "<s>", "</s>"]


@functools.cache
def corpus():
    """Without rare characters, each of which would be a token."""
    parts = strings.fragments()
    texts = [strings.make(i, parts) for i in range(100000, 101000)]
    counts = collections.Counter("".join(texts))
    return ["".join(c for c in text if counts[c] >= 40) for text in texts]


@functools.cache
def charsmap(rule):
    """The compiled rules of sentencepiece: a rule by name, or the lines of a table."""
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rules.tsv"
        table.write_text(rule, encoding="utf-8")
        named = {"normalization_rule_tsv": str(table)} if "\t" in rule else {"normalization_rule_name": rule}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g h"] * 9), vocab_size=12,
                                                 model_prefix=f"{folder}/m", minloglevel=3, **named)
        spec = (pathlib.Path(folder) / "m.model").read_bytes()
    return normalizers.Precompiled(blob_of(spec))


def blob_of(model):
    """ModelProto.normalizer_spec (field 3) .precompiled_charsmap (field 2)."""
    def fields(data):
        at = 0
        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(data):
            key = varint()
            if key & 7 == 0:
                yield key >> 3, varint()
            elif key & 7 == 5:
                at += 4
            else:
                size = varint()
                yield key >> 3, data[at:at + size]
                at += size
    return next(v for k, v in fields(next(v for k, v in fields(model) if k == 3)) if k == 2)


def sequence(parts, many):
    return parts[0] if len(parts) == 1 else many(parts)


def build(model, trainer, normalizer=(), pre=(), decoder=None, template=None, processor=None, added=()):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = sequence(list(normalizer), normalizers.Sequence)
    if pre:
        tokenizer.pre_tokenizer = sequence(list(pre), pre_tokenizers.Sequence)
    tokenizer.train_from_iterator(corpus(), trainer)
    if decoder:
        tokenizer.decoder = sequence(list(decoder), decoders.Sequence)
    if template:
        ids = [(t, tokenizer.token_to_id(t)) for t in template.split() if t != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, pair=template + " $B", special_tokens=ids)
    if processor:
        tokenizer.post_processor = processor(tokenizer)
    tokenizer.add_tokens(list(added))
    return tokenizer


def rebuild(tokenizer, **options):
    """The same with options that the trainer knows nothing of."""
    data = json.loads(tokenizer.to_str())
    data["model"].update(options)
    return Tokenizer.from_str(json.dumps(data))


def bytes_bpe(size, pre, special=("<|endoftext|>",), **rest):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=list(special), show_progress=False)
    return build(models.BPE(), trainer, pre=pre, decoder=[decoders.ByteLevel()], **rest)


def split_bytes(pattern, size=500, behavior="isolated", **rest):
    pre = [pre_tokenizers.Split(Regex(pattern), behavior),
           pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    return bytes_bpe(size, pre, **rest)


def fallback_bpe(pre, size=600, **rest):
    control = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=control, show_progress=False)
    tokenizer = build(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainer, pre=pre, **rest)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(data))


SPM_DECODER = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]


def wordpiece(size=400, special=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), **rest):
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(special), show_progress=False)
    options = dict(pre=[pre_tokenizers.BertPreTokenizer()], decoder=[decoders.WordPiece()], template="[CLS] $A [SEP]")
    data = json.loads(build(models.WordPiece(unk_token="[UNK]"), trainer, **{**options, **rest}).to_str())
    ordered = list(special) + sorted(set(data["model"]["vocab"]) - set(special))  # training numbers them as they come
    data["model"]["vocab"] = {token: i for i, token in enumerate(ordered)}
    return Tokenizer.from_str(json.dumps(data))


def unigram(size=400, special=("<pad>", "</s>", "<unk>"), **rest):
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=list(special), unk_token="[UNK]" if "[UNK]" in special else "<unk>", show_progress=False)
    options = dict(pre=[pre_tokenizers.Metaspace()], decoder=[decoders.Metaspace()])
    data = json.loads(build(models.Unigram(), trainer, **{**options, **rest}).to_str())
    vocab, first = data["model"]["vocab"], len(special)
    # Training sums, and numbers the rare characters, in an order that changes from run to run.
    data["model"]["vocab"] = vocab[:first] + sorted(([t, round(s, 1)] for t, s in vocab[first:]), key=lambda x: (-x[1], x[0]))
    return Tokenizer.from_str(json.dumps(data))


def bytes_unigram():
    control = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = unigram(size=700, special=control, decoder=SPM_DECODER, normalizer=[normalizers.Replace(" ", "▁")], pre=())
    data = json.loads(rebuild(tokenizer, byte_fallback=True).to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(data))


def wordlevel(size=400, special=("[UNK]", "[PAD]"), **rest):
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=list(special), show_progress=False)
    return build(models.WordLevel(unk_token="[UNK]"), trainer, **rest)


def plain_bpe(size=400, model=None, special=("<unk>",), trainer=None, **rest):
    made = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
                               **(trainer or {}))
    return build(models.BPE(unk_token="<unk>", **(model or {})), made, **rest)


def every_added():
    """Added tokens of every kind under a normalizer that changes their texts."""
    flags = [dict(zip(("lstrip", "rstrip", "single_word", "normalized", "special"), map(bool, bits)))
             for bits in ((0, 0, 0, 1, 0), (1, 0, 0, 0, 0), (0, 1, 0, 1, 1), (0, 0, 1, 0, 0), (1, 1, 1, 1, 0), (0, 0, 0, 0, 1))]
    texts = ["The", "é", "Ａ", "day", "Little", "<|x y|>"]
    added = [AddedToken(t, **f) for t, f in zip(texts, flags)]
    return plain_bpe(normalizer=[normalizers.NFKC(), normalizers.Lowercase()], pre=[pre_tokenizers.Metaspace()],
                     decoder=[decoders.Metaspace()], added=added)


def roberta(tokenizer):
    return processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")))


def behaviours(kind):
    return lambda: plain_bpe(pre=[pre_tokenizers.Split(Regex(r"[aeiou\s]"), kind), pre_tokenizers.Punctuation(kind),
                                  pre_tokenizers.Digits(kind == "removed")])


RULES = "".join(f"{a}\t{b}\n" for a, b in [("41", "61"), ("FF21", "61 61"), ("20 20", "20"), ("C4", "41 308"), ("E9", "65")])
SPACES = normalizers.Replace(Regex(" {2,}"), " ")
KINDS = {
    "gpt2": lambda: bytes_bpe(500, [pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "roberta": lambda: bytes_bpe(500, [pre_tokenizers.ByteLevel()], special=("<s>", "</s>"), processor=roberta),
    "pythia": lambda: bytes_bpe(500, [pre_tokenizers.ByteLevel(add_prefix_space=False)], normalizer=[normalizers.NFC()]),
    "starcoder": lambda: bytes_bpe(500, [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "llama3": lambda: rebuild(split_bytes(LLAMA3), ignore_merges=True),
    "qwen2": lambda: split_bytes(QWEN, size=360, normalizer=[normalizers.NFC()],
                                 added=[AddedToken("<|im_end|>", special=True, normalized=False),
                                        AddedToken("<think>", special=False, normalized=False)]),
    "o200k": lambda: split_bytes(O200K),
    "deepseek": lambda: bytes_bpe(500, [pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
                                        pre_tokenizers.Split(Regex(DEEPSEEK_CJK), "isolated"),
                                        pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
    "bloom": lambda: split_bytes(BLOOM),
    "kimi": lambda: split_bytes(HUNYUAN, size=360),
    "llama2": lambda: fallback_bpe([], decoder=SPM_DECODER, template="<s> $A",
                                   normalizer=[normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "mistral-metaspace": lambda: fallback_bpe([pre_tokenizers.Metaspace(prepend_scheme="first", split=False)],
                                              decoder=SPM_DECODER, template="<s> $A"),
    "gemma": lambda: fallback_bpe([pre_tokenizers.Split(" ", "merged_with_previous")], decoder=SPM_DECODER[:3],
                                  normalizer=[normalizers.Replace(" ", "▁")], template="<s> $A"),
    "openai-gpt": lambda: plain_bpe(model={"end_of_word_suffix": "</w>"}, trainer={"end_of_word_suffix": "</w>"},
                                    normalizer=[normalizers.BertNormalizer()], pre=[pre_tokenizers.BertPreTokenizer()],
                                    decoder=[decoders.BPEDecoder()]),
    "clip": lambda: plain_bpe(model={"end_of_word_suffix": "</w>"}, trainer={"end_of_word_suffix": "</w>"},
                              normalizer=[normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()],
                              pre=[pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)], decoder=[decoders.BPEDecoder()]),
    "bpe-prefix": lambda: plain_bpe(model={"continuing_subword_prefix": "##"}, trainer={"continuing_subword_prefix": "##"},
                                    pre=[pre_tokenizers.Whitespace()], decoder=[decoders.WordPiece()]),
    "nfd-strip": lambda: plain_bpe(model={"fuse_unk": True}, normalizer=[normalizers.NFD(), normalizers.StripAccents()],
                                   pre=[pre_tokenizers.Metaspace(prepend_scheme="never")], decoder=[decoders.Metaspace()]),
    "nfkd": lambda: bytes_bpe(400, [pre_tokenizers.ByteLevel()], normalizer=[normalizers.NFKD(), normalizers.Strip()]),
    "nfkc-lower": lambda: plain_bpe(normalizer=[normalizers.NFKC(), normalizers.Lowercase()],
                                    pre=[pre_tokenizers.WhitespaceSplit()]),
    "byte-normalizer": lambda: plain_bpe(normalizer=[normalizers.NFKC(), normalizers.ByteLevel()], decoder=[decoders.ByteLevel()]),
    "scripts": lambda: plain_bpe(size=300, pre=[pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace()],
                                 normalizer=[normalizers.NFKC()], decoder=[decoders.Metaspace()]),
    "added": every_added,
    "split-removed": behaviours("removed"),
    "split-previous": behaviours("merged_with_previous"),
    "split-next": behaviours("merged_with_next"),
    "split-contiguous": behaviours("contiguous"),
    "delimiter": lambda: plain_bpe(pre=[pre_tokenizers.CharDelimiterSplit("e")]),
    "bert-uncased": lambda: wordpiece(size=300, normalizer=[normalizers.BertNormalizer()]),
    "bert-cased": lambda: wordpiece(normalizer=[normalizers.BertNormalizer(lowercase=False)]),
    "bert-accents": lambda: wordpiece(normalizer=[normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False)],
                                      decoder=[decoders.WordPiece(cleanup=False)]),
    "bert-processing": lambda: wordpiece(template=None, pre=[pre_tokenizers.Whitespace()], decoder=(),
                                         processor=lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
    "wordpiece-short": lambda: rebuild(wordpiece(normalizer=[normalizers.NFKC()], pre=[pre_tokenizers.WhitespaceSplit()]),
                                       max_input_chars_per_word=7),
    "t5": lambda: unigram(normalizer=[charsmap("nmt_nfkc")], template="$A </s>",
                          pre=[pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
    "xlm-roberta": lambda: unigram(special=("<s>", "<pad>", "</s>", "<unk>"), normalizer=[charsmap("nmt_nfkc")], template="<s> $A </s>"),
    "nllb": lambda: unigram(normalizer=[charsmap("nmt_nfkc_cf"), normalizers.Replace(Regex(" {2,}"), "▁")]),
    "albert": lambda: unigram(special=("<pad>", "<unk>", "[CLS]", "[SEP]"), template="[CLS] $A [SEP]",
                              normalizer=[normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(),
                                          normalizers.Lowercase(), charsmap("nfkc"), SPACES]),
    "unigram-rules": lambda: unigram(normalizer=[charsmap(RULES)]),
    "unigram-bytes": bytes_unigram,
    "unigram-nmt": lambda: unigram(normalizer=[normalizers.Nmt(), normalizers.NFKC(), SPACES]),
    "wordlevel": lambda: wordlevel(size=200, pre=[pre_tokenizers.Whitespace()]),
    "wordlevel-lower": lambda: wordlevel(pre=[pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")],
                                         normalizer=[normalizers.Lowercase()]),
    "ctc": lambda: wordlevel(special=("[UNK]", "<pad>", "|"), normalizer=[normalizers.Replace(" ", "|")],
                             pre=[pre_tokenizers.Split(Regex("."), "isolated")], decoder=[decoders.CTC()]),
}
FIXTURES = ["qwen2", "kimi", "scripts", "added", "bert-uncased", "unigram-rules", "unigram-bytes", "wordlevel", "nfd-strip"]


def judge(name, path, driver):
    """A row of the table."""
    reference = Tokenizer.from_file(str(path))
    parts = strings.fragments()
    texts = [strings.make(i, parts) for i in range(COUNT)]
    try:
        bad = []
        for special in (False, True):
            wanted = [reference.encode(t, add_special_tokens=special).ids for t in texts]
            found = compare.encode(driver, str(path), [t.encode("utf-8") for t in texts], special)
            bad += [("encode", t, f, w) for t, f, w in zip(texts, found, wanted) if f != w]
            lists = compare.id_lists(wanted, reference.get_vocab_size())
            wanted = [reference.decode(ids, skip_special_tokens=special) for ids in lists]
            found = compare.decode(driver, str(path), lists, special)
            bad += [("decode", t, f, w) for t, f, w in zip(lists, found, wanted) if f != w]
    except subprocess.CalledProcessError:
        return "refused", []
    return "equal" if not bad else f"{len(bad)} differ", bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compare")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or (FIXTURES if args.write else KINDS):
            path = pathlib.Path(HERE / "kinds" if args.write else folder) / f"{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(json.loads(KINDS[name]().to_str()), separators=(",", ":")) + "\n")
            if args.write:
                compare.write(str(path), str(path.with_suffix(".expected")), COUNT)
                continue
            verdict, bad = judge(name, path, args.compare)
            failures += verdict != "equal"
            print(f"{name:20} {verdict}")
            for what, text, found, wanted in bad[:2]:
                print(f"  {what} {text!r}\n    found  {found!r}\n    wanted {wanted!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
