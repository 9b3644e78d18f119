#!/usr/bin/env python3
"""What every code point is to the patterns, pre-tokenizers and normalizers of PyPI `tokenizers`.

    classes.py --write    classes.expected, which test_tokenizer_classes.c compares with: a hash, a member of
                          tokenizer.json and its value, for each
"""
import itertools
import json
import pathlib
import sys

from tokenizers import Tokenizer

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, CODES))
# Each by itself, and each beside its neighbours.
LINES = "\n".join(TEXT) + TEXT[::-1]
BYTES = [0, *itertools.accumulate(1 + (c > 0x7F) + (c > 0x7FF) + (c > 0xFFFF) for c in CODES)]

CATEGORIES = ("L Lu Ll Lt Lm Lo LC M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Cn Co Any "
              "Assigned")
# The scripts of published tokenizers, and all others of Unicode 9 with letters of a living language.
SCRIPTS = ("Han Hiragana Katakana Hangul Thai Lao Myanmar Khmer Tibetan Latin Greek Cyrillic Armenian Arabic Syriac "
           "Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Georgian Ethiopic "
           "Cherokee Canadian_Aboriginal Mongolian Bopomofo Yi Common Inherited Tagalog Buhid Limbu Tai_Le New_Tai_Lue "
           "Buginese Tai_Tham Balinese Sundanese Batak Lepcha Ol_Chiki Vai Bamum Javanese Cham Tai_Viet Meetei_Mayek "
           "Tifinagh Nko Adlam Osage Newa Chakma Braille")
PROPERTIES = ("Alphabetic Uppercase White_Space Emoji Emoji_Presentation Emoji_Modifier Emoji_Modifier_Base Emoji_Component "
              "Extended_Pictographic Ideographic Unified_Ideograph Join_Control Hex_Digit ID_Start XID_Start Case_Ignorable "
              "Dash Math Quotation_Mark Default_Ignorable_Code_Point Variation_Selector Noncharacter_Code_Point In_Emoticons")
POSIX = "alnum alpha ascii blank cntrl digit graph print punct space upper word xdigit"
OTHERS = [r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\h", r"\H", ".", r"(?m:.)", r"\O", r"\N"]
BORDERS = [r"\b", r"\B", "^", "$", r"\A", r"\z", r"\Z", r"(?<=\w)\b", r"\b(?!\s)"]
FOLDED = ["(?i)[a-z]", "(?i)[A-Z]", "(?i)k", "(?i)s", "(?i)[\\p{Lu}]", "(?i)[\\p{Ll}]", "(?i)\\p{Lu}", "(?i)[^\\p{Lu}]",
          "(?i)[[:upper:]]", "(?i)[µ-ÿ]", "(?i)[α-ω]", "(?i)[а-я]", "(?i)ß", "(?i)ss", "(?i)ffi", "(?i)[^a-z]", "(?i)[\\w&&[^k]]"]
SETS = [r"[\p{L}\p{M}]", r"[^\s\p{L}\p{N}]", r"[\p{L}&&[^\p{Han}]]", r"[^\r\n\p{L}\p{P}\p{S}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
        r"[\p{^Han}&&\p{Lo}]", r"[\W_]", r"[^\W\d]", r"[[:^alpha:]&&\p{So}]", "[一-龥぀-ゟ゠-ヿ]", r"\p{^L}",
        # but for the characters that no older one is like
        r"[\p{Hebrew}&&[^\x{10D8E}\x{10D8F}]]", r"[\p{Lowercase}&&[^\x{10FC}]]", r"[\p{Cased}&&[^\x{10FC}]]", r"[[:lower:]&&[^\x{10FC}]]", r"[!-~ -]"]


def split(pattern):
    return "pre_tokenizer", {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def questions():
    for name in (CATEGORIES + " " + SCRIPTS + " " + PROPERTIES).split():
        yield split(rf"\p{{{name}}}+")
    for name in ("L", "N", "P", "Han", "Cn"):
        yield split(rf"\P{{{name}}}+")
    for name in POSIX.split():
        yield split(f"[[:{name}:]]+")
    for pattern in OTHERS + FOLDED + SETS:
        yield split(f"(?:{pattern})+")
    for pattern in BORDERS:
        yield split(pattern)
    for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts"):
        yield "pre_tokenizer", {"type": name}
    for behavior in ("Isolated", "Contiguous"):
        yield "pre_tokenizer", {"type": "Punctuation", "behavior": behavior}
    for single in (False, True):
        yield "pre_tokenizer", {"type": "Digits", "individual_digits": single}
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"):
        yield "normalizer", {"type": name}
    for bits in range(1, 16):
        names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        if bits in (1, 2, 4, 8, 15):
            yield "normalizer", {"type": "BertNormalizer", **{name: bool(bits >> i & 1) for i, name in enumerate(names)}}


def fnv(values):
    value = 0x811C9DC5
    for item in values:
        value = ((value ^ item) * 0x01000193) & 0xFFFFFFFF
    return value


def answer(member, value):
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "model": model, "added_tokens": [], member: value}))
    if member == "normalizer":
        return fnv(map(ord, tokenizer.normalizer.normalize_str(LINES)))
    return fnv(BYTES[at] for _, piece in tokenizer.pre_tokenizer.pre_tokenize_str(TEXT) for at in piece)


def main():
    with open(pathlib.Path(__file__).with_suffix(".expected"), "w", encoding="utf-8") as file:
        for member, value in questions():
            try:
                file.write(f"{answer(member, value):08x} {member} {json.dumps(value, ensure_ascii=False)}\n")
            except Exception as error:  # pylint: disable=broad-except
                sys.exit(f"classes.py: {value}: {error}")


if __name__ == "__main__":
    main()
