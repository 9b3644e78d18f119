"""The library libllmpart-runtime: found, and called through cffi by the declarations of its own header."""

from __future__ import annotations

import array
import functools
import operator
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cffi

from ._command import Error, command, log

NAME = "libllmpart-runtime.so.1"

Tokens = Iterable[int]  # a NumPy array is one as well


def declarations() -> str:
    """Return the declarations of llmpart.h, without its preprocessor lines."""
    header = Path(__file__).with_name("llmpart.h").read_text(encoding="utf-8")
    header = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", header, flags=re.MULTILINE)


ffi = cffi.FFI()
ffi.cdef(declarations())


def find() -> str:
    """Return the library's path: LLMPART_RUNTIME, or the one that belongs to the command, or else its bare name."""
    if given := os.environ.get("LLMPART_RUNTIME"):
        return given
    try:
        folder = Path(command()).parent.parent  # a prefix or a wheel with bin/, or a build tree with tools/
    except Error:
        return NAME  # as the dynamic linker finds it
    found = (path for place in ("runtime/library", "lib", "lib/*", "lib64") for path in folder.glob(f"{place}/{NAME}"))
    return str(next(found, NAME))


@ffi.callback("llmpart_log")
def warn(user: Any, line: Any) -> None:
    """Receive a warning of the library."""
    log.warning("%s", string(line))


@functools.cache
def library() -> Any:
    """Load the library once per process."""
    try:
        loaded: Any = ffi.dlopen(find())
    except OSError as error:
        raise Error(f"{error}: install libllmpart-runtime1, or set LLMPART_RUNTIME to the path of {NAME}") from None
    loaded.llmpart_set_log(warn, ffi.NULL)
    return loaded


def string(text: Any) -> str:
    """Return the library's text."""
    data = ffi.string(text)
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def last_error() -> Error:
    """Return why the library's last function failed on this thread."""
    return Error(string(library().llmpart_error()))


def c_text(text: str | os.PathLike[str]) -> Any:
    """Return a text for the library, which lives as long as the result."""
    data = os.fspath(text).encode()
    if b"\0" in data:
        raise ValueError("a text for llmpart may not contain NUL")
    return ffi.new("char[]", data)


def c_tokens(tokens: Tokens) -> Any:
    """Return tokens for the library: the memory of a contiguous array of 32-bit integers, else a copy."""
    source: Any = tokens
    try:
        view = memoryview(source)
    except TypeError:
        pass  # not an array
    else:
        with view:
            # A memoryview in a cycle of garbage crashes Python while something reads its memory: such a one is copied.
            if view.format == "i" and view.ndim == 1 and view.c_contiguous and not isinstance(source, memoryview):
                return ffi.from_buffer("int32_t[]", source)
            source = view.tolist()
    return ffi.new("int32_t[]", [operator.index(token) for token in source])


def filled(function: Any, *arguments: Any) -> array.array[int]:
    """Call a function of encoding twice: for the number of tokens, and for the tokens."""
    count = function(*arguments, ffi.NULL, 0)
    tokens = array.array("i", bytes(4 * max(count, 0)))
    if count < 0 or function(*arguments, ffi.from_buffer("int32_t[]", tokens), count) != count:
        raise last_error()
    return tokens


class Struct:
    """A struct of options that begins with its size; the texts in it live as long as it does."""

    def __init__(self, name: str, **fields: Any) -> None:
        self.pointer = ffi.new(f"{name} *", {"size": ffi.sizeof(name)})
        self.texts: list[Any] = []
        known = dict(ffi.typeof(name).fields)
        for field, value in fields.items():
            if field not in known or field == "size":
                raise TypeError(f"{name} has no field '{field}'")
            if isinstance(value, (str, os.PathLike)):
                value = c_text(value)
                self.texts.append(value)
            if value is not None:
                setattr(self.pointer, field, value)
