#!/usr/bin/env python3
"""Compares random tokenizers with PyPI `tokenizers`: normalizers, added tokens, pre-tokenizers and patterns by chance.

    random_tokenizers.py --driver BUILD/tests/runtime/tokenizer/tokenize [--count 850] [--texts 200] [--seed N]

Each piece of a text is a token of its own (WordLevel), so that ids tell where the text was cut.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

import compare
import strings
from families import PATTERNS

CLASSES = [r"\p{L}", r"\p{N}", r"\p{Lu}", r"\p{Ll}", r"\p{Lo}", r"\p{M}", r"\p{P}", r"\p{S}", r"\p{Han}", r"\P{L}", r"\p{^N}", r"\s",
           r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", "[[:alpha:]]", "[[:punct:]]", "[[:space:]]", "[[:^upper:]]", r"\p{Hiragana}",
           r"\p{Katakana}", r"\p{Hangul}", r"\p{Thai}", r"\p{Arabic}", r"\p{Emoji}", ".", r"(?m:.)"]
LITERALS = ["a", "e", "s", "K", "T", "é", "ß", "中", "の", "́", "'", "-", r"\.", ",", " ", r"\n", r"\r", r"\t", "1", "0", "_", "▁", "<", "🩷", "ſ"]
INSIDE = [r"\p{L}", r"\p{N}", r"\p{P}", r"\s", r"\w", r"\d", r"\W", r"\p{Han}", r"\P{Lu}", "a-z", "A-Z", "0-9", "à-ÿ", "一-龥", "[:alpha:]",
          "[:^digit:]", "e", "_", r"\n", " ", "K", "ſ", ".", "'", r"\-"]
BORDERS = [r"\b", r"\B", "^", "$", r"\A", r"\z", r"\Z"]
COUNTS = ["?", "*", "+", "{2}", "{1,3}", "{,2}", "{2,}", "??", "*?", "+?", "?+", "*+", "++", "{1,2}?", "{2}+"]
PIECES = ["The", " ", "  ", "\n", "\n\n", "\r\n", "\t", "a", "e", "é", "é", "x1", "12", "3", "'s", "'S", "ſ", "K", "ß", "SS", "中文", "。", "の", "ア",
          "한", "ไทย", "!", "?", "-", "_", "▁", "<x>", "<y>", "🩷", "🫨", "👍🏽", "\u200d", "\xa0", "\u3000", "\x85", "\u180e", "İ", "ǅ", "ﬃ",
          "\u0301", "\u0323", "𞤀", "\U0001e030", "\u1c89", "\U00010d50", "\U00010d70", "\U00016ea0", "ᲀ", "١", "½", "Ⅷ", "\0", "\x1f"]


def inside(rng, depth=0):
    items = "".join(rng.choice(INSIDE) for _ in range(rng.randint(1, 4)))
    if depth < 2 and rng.random() < 0.2:
        items += rng.choice(["", "&&"]) + inside(rng, depth + 1)
    return "[" + rng.choice(["", "", "^"]) + items + "]"


def atom(rng, depth):
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(CLASSES)
    if kind < 0.6:
        return rng.choice(LITERALS)
    if kind < 0.8:
        return inside(rng)
    if kind < 0.86 or depth > 1:
        return rng.choice(BORDERS)
    opening = rng.choice(["(?:", "(", "(?i:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i)(?:"])
    return opening + (rng.choice(CLASSES + LITERALS) if "<" in opening else alternatives(rng, depth + 1)) + ")"


def sequence(rng, depth):
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = atom(rng, depth)
        parts.append(part + (rng.choice(COUNTS) if rng.random() < 0.4 and part not in BORDERS else ""))
    return "".join(parts)


def alternatives(rng, depth=0):
    return "|".join(sequence(rng, depth) for _ in range(rng.choice([1, 1, 2, 3])))


def pattern(rng):
    kind = rng.random()
    if kind < 0.2:
        return {"String": rng.choice([" ", "a", "▁", ".", "12", "中文", "<x>"])}
    return {"Regex": rng.choice(PATTERNS) if kind < 0.4 else alternatives(rng)}


def flags(rng, *names):
    return {name: rng.random() < 0.5 for name in names}


def normalizer(rng):
    return rng.choice([
        lambda: {"type": rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"])},
        lambda: {"type": "Strip", **flags(rng, "strip_left", "strip_right")},
        lambda: {"type": "Prepend", "prepend": rng.choice(["▁", "x"])},
        lambda: {"type": "BertNormalizer", **flags(rng, "clean_text", "handle_chinese_chars", "strip_accents", "lowercase")},
        lambda: {"type": "Replace", "pattern": pattern(rng), "content": rng.choice(["", " ", "▁", "a1"])}])()


def pre_tokenizer(rng):
    behavior = rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
    split = lambda: {"type": "Split", "pattern": pattern(rng), "behavior": behavior, **flags(rng, "invert")}
    return rng.choice([
        split, split, split, split,
        lambda: {"type": "ByteLevel", "trim_offsets": True, **flags(rng, "add_prefix_space", "use_regex")},
        lambda: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["first", "first", "always", "never"]), **flags(rng, "split")},
        lambda: {"type": "Digits", **flags(rng, "individual_digits")},
        lambda: {"type": "Punctuation", "behavior": behavior},
        lambda: {"type": rng.choice(["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts"])},
        lambda: {"type": "CharDelimiterSplit", "delimiter": rng.choice("a ▁1")}])()


def several(rng, make, member, most):
    parts = [make(rng) for _ in range(rng.randint(0, most))]
    return {"type": "Sequence", member: parts} if parts else None


def added(rng, index):
    return {"id": 1 + index, "content": "", **flags(rng, "single_word", "lstrip", "rstrip", "normalized", "special")}


def document(rng):
    tokens = [added(rng, i) for i in range(rng.randint(0, 4))]
    for token, content in zip(tokens, rng.sample(["<x>", "<y>", "\n", " ", "\t", "a", "The", "12", "中文", "x", "é", "<x>\n"], len(tokens))):
        token["content"] = content
    model = {"type": "WordLevel", "vocab": {"[unk]": 0}, "unk_token": "[unk]"}
    return {"version": "1.0", "added_tokens": tokens, "normalizer": several(rng, normalizer, "normalizers", 3),
            "pre_tokenizer": several(rng, pre_tokenizer, "pretokenizers", 2), "post_processor": None, "decoder": None, "model": model}


def text(rng, parts):
    pieces = []
    for _ in range(rng.randint(1, 14)):
        kind = rng.random()
        if kind < 0.6:
            pieces.append(rng.choice(PIECES))
        elif kind < 0.8:
            pieces.append(rng.choice(parts))
        else:
            code = rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0x10000), rng.randrange(0x10000, 0x20000)])
            pieces.append(chr(code) if not 0xD800 <= code < 0xE000 else "a")
    return "".join(pieces)


def pieces(tokenizer, texts):
    """The words that the texts are cut into, up to added tokens, and cuts beside them."""
    for line in texts:
        for part in [line, *line.split()]:
            normal = tokenizer.normalizer.normalize_str(part) if tokenizer.normalizer else part
            cut = tokenizer.pre_tokenizer.pre_tokenize_str(normal) if tokenizer.pre_tokenizer else [(normal, None)]
            yield from (word for word, _ in cut)


def judge(rng, driver, folder, texts):
    data = document(rng)
    try:
        words = sorted(set(pieces(Tokenizer.from_str(json.dumps(data)), texts)) - {""})
        data["model"]["vocab"].update((word, 1 + i) for i, word in enumerate(words))
        reference = Tokenizer.from_str(json.dumps(data))
        normal = [reference.normalizer.normalize_str(t["content"]) for t in data["added_tokens"] if t["normalized"] and reference.normalizer]
        if "" in normal or len(set(normal)) < len(normal):
            return "skipped", data, []  # which of equal texts tokenizers find changes from run to run
        data = json.loads(reference.to_str())  # with the ids that it gives to added tokens
        wanted = [reference.encode(line, add_special_tokens=False).ids for line in texts]
    except BaseException as error:  # pylint: disable=broad-except
        if isinstance(error, KeyboardInterrupt):
            raise
        return "skipped", data, []  # a pattern that tokenizers refuses, or a text at which it panics
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    try:
        found = compare.encode(driver, str(path), [line.encode() for line in texts], False)
    except subprocess.CalledProcessError:
        return "refused", data, []
    bad = [(t, f, w) for t, f, w in zip(texts, found, wanted) if f != w]
    return ("differs" if bad else "equal"), data, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--count", type=int, default=850)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    parts, verdicts = strings.fragments(), {}
    with tempfile.TemporaryDirectory() as folder:
        number = args.seed * 1000000
        while verdicts.get("equal", 0) + verdicts.get("differs", 0) + verdicts.get("refused", 0) < args.count:
            number += 1
            rng = random.Random(number)
            verdict, data, bad = judge(rng, args.driver, pathlib.Path(folder), [text(rng, parts) for _ in range(args.texts)])
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            if verdict in ("equal", "skipped"):
                continue
            del data["model"]["vocab"]
            print(f"{number}: {verdict} for {len(bad)} texts: {json.dumps(data, ensure_ascii=False)}")
            for line, found, wanted in bad[:2]:
                print(f"  {line!r}\n    found  {found}\n    wanted {wanted}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 0 if set(verdicts) <= {"equal", "skipped"} else 1


if __name__ == "__main__":
    sys.exit(main())
