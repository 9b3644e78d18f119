"""Writes ONNX files without the package `onnx`: each function returns the bytes of one protocol buffer message."""

from __future__ import annotations

import numpy as np

FLOAT, INT64, BOOL, HALF = 1, 7, 9, 10
TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64, np.dtype(np.bool_): BOOL, np.dtype(np.float16): HALF}


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return text(1, name) + number(3, value) + number(20, 2)
    return text(1, name) + b"".join(number(8, item) for item in value) + number(20, 7)


def node(kind: str, inputs, output: str, **attributes) -> bytes:
    return b"".join([*(text(1, name) for name in inputs), text(2, output), text(3, output), text(4, kind),
                     *(text(5, attribute(name, attributes[name])) for name in sorted(attributes))])


def tensor(name: str, value) -> bytes:
    value = np.asarray(value)
    return b"".join(number(1, size) for size in value.shape) + number(2, TYPES[value.dtype]) + text(8, name) + text(9, value.tobytes())


def external_tensor(name: str, kind: int, dims, location: str, offset: int, length: int) -> bytes:
    """A tensor whose bytes are in another file."""
    entries = (("location", location), ("offset", str(offset)), ("length", str(length)))
    return b"".join([*(number(1, size) for size in dims), number(2, kind), text(8, name),
                     *(text(13, text(1, key) + text(2, value)) for key, value in entries), number(14, 1)])


def value_info(name: str, kind: int, dims: list[int | str]) -> bytes:
    shape = b"".join(text(1, text(2, size) if isinstance(size, str) else number(1, size)) for size in dims)
    return text(1, name) + text(2, text(1, number(1, kind) + text(2, shape)))


def model(nodes: list[bytes], inputs: list[bytes], outputs: list[bytes], tensors: list[bytes], opset: int, producer: str) -> bytes:
    graph = b"".join([*(text(1, one) for one in nodes), text(2, "main_graph"), *(text(5, one) for one in tensors),
                      *(text(11, one) for one in inputs), *(text(12, one) for one in outputs)])
    return number(1, 8) + text(2, producer) + text(7, graph) + text(8, text(1, "") + number(2, opset))
