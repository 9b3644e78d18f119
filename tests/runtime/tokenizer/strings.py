"""The texts that the tokenizer is compared on: a pure function of their number, the same
as test_tokenizer_reference.c makes."""
import pathlib
import re

MASK = (1 << 64) - 1
SEED = 20240229

# First and last code point; nothing that Unicode assigned after version 14.
RANGES = [
    (0x20, 0x7E), (0x20, 0x7E), (0x00, 0x1F), (0x80, 0xFF), (0x100, 0x24F), (0x250, 0x2FF), (0x300, 0x36F),
    (0x391, 0x3C9), (0x400, 0x4FF), (0x531, 0x556), (0x5D0, 0x5EA), (0x620, 0x669), (0x905, 0x939), (0x985, 0x98C),
    (0xE01, 0xE3A), (0x10A0, 0x10C5), (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x20A0, 0x20BF),
    (0x2150, 0x218B), (0x2190, 0x23FF), (0x2500, 0x25FF), (0x2600, 0x27BF), (0x3000, 0x303F), (0x3041, 0x3096),
    (0x30A0, 0x30FF), (0x4E00, 0x9FEF), (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xFB00, 0xFB06), (0xFF01, 0xFF60),
    (0xFFF0, 0xFFFD), (0x10330, 0x1034A), (0x1D400, 0x1D454), (0x1F300, 0x1F64F), (0x20000, 0x2A6D6),
    (0xE0000, 0xE007F),
]


def fragments():
    escapes = {"s": " ", "n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
    text = (pathlib.Path(__file__).parent / "fragments.txt").read_text(encoding="utf-8")
    expand = lambda m: chr(int(m[2], 16)) if m[2] else escapes[m[1]]
    return [re.sub(r"\\(u([0-9a-f]{4})|.)", expand, line) for line in text.split("\n")[:-1]]


class Random:
    def __init__(self, seed):
        self.state = seed & MASK

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 33) % n


def make(index, parts):
    random = Random(SEED * 1000003 + index)
    text = []
    for _ in range(1 + random.below(400 if index % 100 == 99 else 20)):
        kind = random.below(8)
        if kind == 0:
            first, last = RANGES[random.below(len(RANGES))]
            text += [chr(first + random.below(last - first + 1)) for _ in range(1 + random.below(4))]
        elif kind == 1:
            text.append(parts[random.below(len(parts))] * (1 + random.below(9)))
        else:
            text.append(parts[random.below(len(parts))])
    return "".join(text)


def hash_bytes(data):
    """FNV-1a"""
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def hash_ids(ids):
    return hash_bytes(b"".join(token.to_bytes(4, "little") for token in ids))
