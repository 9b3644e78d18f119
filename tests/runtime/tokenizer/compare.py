#!/usr/bin/env python3
"""Compares this tokenizer with PyPI `tokenizers` on the texts of strings.py, or writes what the tests expect.

    compare.py TOKENIZER.json --driver BUILD/tests/runtime/tokenizer/tokenize [--count 10000]
    compare.py TOKENIZER.json --write tests/runtime/tokenizer/NAME.expected [--count N]

The first encodes every text and decodes every id list, and lists that stop inside characters, both ways.
"""
import argparse
import struct
import subprocess
import sys

import tokenizers

import strings


def run(driver, path, mode, data, special):
    command = [driver, path, mode] + (["special"] if special else [])
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def encode(driver, path, texts, special):
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    lines = run(driver, path, "encode", data, special).decode().split("\n")[:-1]
    return [[int(i) for i in line.split()] for line in lines]


def decode(driver, path, lists, special):
    data = "".join(" ".join(map(str, ids)) + "\n" for ids in lists).encode()
    out = run(driver, path, "decode", data, special)
    texts, at = [], 0
    while at < len(out):
        (size,) = struct.unpack_from("<I", out, at)
        texts.append(out[at + 4 : at + 4 + size].decode("utf-8"))
        at += 4 + size
    return texts


def report(name, inputs, found, wanted):
    bad = [i for i, (f, w) in enumerate(zip(found, wanted)) if f != w]
    if len(found) != len(wanted):
        print(f"{name}: {len(found)} answers to {len(wanted)} questions")
        return 1
    print(f"{name}: {len(wanted) - len(bad)} of {len(wanted)} equal")
    for i in bad[:3]:
        print(f"  {i}: {inputs[i]!r}\n    found  {found[i]!r}\n    wanted {wanted[i]!r}")
    return len(bad)


def id_lists(encoded, size):
    """The encodings, their halves, and random ids, which break characters apart."""
    random = strings.Random(7)
    halves = [ids[len(ids) // 2 :] for ids in encoded]
    noise = [[random.below(size + 2) for _ in range(1 + random.below(12))] for _ in encoded]
    return encoded + halves + noise


def damaged(texts):
    """The texts as bytes with a byte changed or cut."""
    random = strings.Random(9)
    for text in texts:
        data = bytearray(text.encode("utf-8"))
        data[random.below(len(data))] = random.below(256)
        yield bytes(data[: 1 + random.below(len(data))])


def compare(path, driver, count):
    reference = tokenizers.Tokenizer.from_file(path)
    parts = strings.fragments()
    texts = [strings.make(i, parts) for i in range(count)]
    raw = list(damaged(texts))
    failures = 0
    for special in (False, True):
        wanted = [e.ids for e in reference.encode_batch(texts, add_special_tokens=special)]
        found = encode(driver, path, [t.encode("utf-8") for t in texts], special)
        failures += report(f"encode, special={special}", texts, found, wanted)
        lists = id_lists(wanted, reference.get_vocab_size())
        wanted = [reference.decode(ids, skip_special_tokens=special) for ids in lists]
        failures += report(f"decode, special={special}", lists, decode(driver, path, lists, special), wanted)
    wanted = [reference.encode(t.decode("utf-8", "replace"), add_special_tokens=False).ids for t in raw]
    return failures + report("encode damaged UTF-8", raw, encode(driver, path, raw, False), wanted)


def write(path, out, count):
    """A line for each text: the hash of its ids and the hash of the text that the second half of them gives."""
    reference = tokenizers.Tokenizer.from_file(path)
    parts = strings.fragments()
    with open(out, "w", encoding="ascii") as file:
        for i in range(count):
            ids = reference.encode(strings.make(i, parts)).ids
            text = reference.decode(ids[len(ids) // 2 :], skip_special_tokens=i % 2 == 1)
            file.write(f"{strings.hash_ids(ids):08x} {strings.hash_bytes(text.encode('utf-8')):08x}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("--driver")
    parser.add_argument("--write")
    parser.add_argument("--count", type=int, default=10000)
    args = parser.parse_args()
    if args.write:
        write(args.tokenizer, args.write, args.count)
        return 0
    try:
        return 1 if compare(args.tokenizer, args.driver, args.count) else 0
    except subprocess.CalledProcessError as error:
        sys.exit(f"compare.py: {error}")


if __name__ == "__main__":
    sys.exit(main())
