"""Bundles: compiled, opened, and generated with."""

from __future__ import annotations

import array
import os
import queue
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ._command import Error, Value, words
from ._library import Struct, Tokens, c_text, c_tokens, ffi, filled, last_error, library, string
from ._plan import Plan, run_compile

MODES = {"exact": 0, "threshold": 1, "standalone": 2}  # llmpart_mode


class Token(NamedTuple):
    """A generated token. `str()` gives its text."""

    token: int
    text: str | None
    """The whole characters that this token completes, perhaps none; None: the bundle has no tokenizer."""
    is_from_cloud: bool
    exit_layer: int
    """The layer of the early exit that gave it; -1: the full model."""
    confidence: float
    ms: float
    """The time since the previous token, or since the start."""

    def __str__(self) -> str:
        return f"{self.token} " if self.text is None else self.text


class Run:
    """A session with its one generation, in a thread that begins when the first token is asked for.

    The garbage collector may end it on any thread, this one included, so that a thread that runs closes its session
    itself.
    """

    def __init__(self, bundle: Any, session: Any, prompt: Any) -> None:
        self.bundle = bundle  # stays open as long as the session
        self.session = session
        self.prompt = prompt
        self.made: queue.SimpleQueue[Token | Error | dict[str, float]] = queue.SimpleQueue()
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None

    def take(self) -> Token | Error | dict[str, float]:
        """Wait for the next token, or the error or the result's fields at the end."""
        if self.thread is None:
            self.thread = threading.Thread(target=self.work, name="llmpart", daemon=True)
            self.thread.start()
        return self.made.get()

    def work(self) -> None:
        """Generate, and put the tokens and the end into the queue."""

        @ffi.callback("llmpart_token_sink")
        def sink(user: Any, token: Any) -> bool:
            text = string(token.text) if token.text else None
            self.made.put(Token(token.token, text, token.is_from_cloud, token.exit_layer, token.confidence, token.ms))
            return not self.stopped.is_set()

        result = Struct("llmpart_result").pointer
        good = library().llmpart_generate(self.session, self.prompt, len(self.prompt), sink, ffi.NULL, result)
        fields = [name for name, _ in ffi.typeof("llmpart_result").fields if name != "size"]
        self.made.put({name: getattr(result, name) for name in fields} if good else last_error())
        library().llmpart_session_close(self.session)

    def stop(self) -> None:
        """End the generation and its session; called once."""
        self.stopped.set()
        if self.thread is None:
            library().llmpart_session_close(self.session)
        elif self.thread is not threading.current_thread():
            self.thread.join()


class Generation(Iterator[Token]):
    """The tokens of a generation, which begins when the first is asked for.

    The library computes in a thread of its own. `close()`, or dropping the object, ends the generation.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stop = weakref.finalize(self, run.stop)
        self.result: dict[str, float] | None = None
        """After the last token: tokens, ttft_ms, tpot_ms, device_ms, cloud_ms, link_ms, bytes_up, bytes_down."""

    def __next__(self) -> Token:
        if not self._stop.alive:
            raise StopIteration
        made = self._run.take()
        if isinstance(made, Token):
            return made
        self._stop()
        if isinstance(made, Error):
            raise made
        self.result = made
        raise StopIteration

    def text(self) -> str:
        """Generate the rest and return its text."""
        return "".join(map(str, self))

    def close(self) -> None:
        """End the generation after its current token."""
        self._stop()


def stop_worker(worker: Any, bundle: Bundle) -> None:
    """Stop a worker; its bundle lives until then."""
    if not library().llmpart_worker_stop(worker):
        raise last_error()


class Worker:
    """Serves a bundle's cloud side to devices, from its creation until `close()` or the end of its `with` block."""

    def __init__(self, bundle: Bundle, **options: Any) -> None:
        settings = Struct("llmpart_worker_options", **options)
        worker = library().llmpart_worker_start(bundle._bundle, settings.pointer)
        if not worker:
            raise last_error()
        self._stop = weakref.finalize(self, stop_worker, worker, bundle)
        self.address = string(library().llmpart_worker_address(worker))
        """Where it listens, as "HOST:PORT"."""

    def close(self) -> None:
        """End the worker within about a second."""
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Bundle:
    """A compiled model in a folder. Any number of threads may use it at once."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        device_side: bool = False,
        check: bool = False,
        trust: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open a bundle.

        With `device_side` the weights of the cloud's side stay on the disk, and every generation needs a worker.
        `check` compares the SHA-256 of every file, and `trust` names the public key by which it must be signed.
        """
        self.path = Path(path)
        self.plan: Plan | None = None
        """The plan by which `compile` made the bundle, if that was just now."""
        options = Struct("llmpart_bundle_options", sides=int(device_side), check=check, trust=trust)
        bundle = library().llmpart_bundle_open(c_text(path), options.pointer)
        if not bundle:
            raise last_error()
        self._bundle = ffi.gc(bundle, library().llmpart_bundle_close)
        self.is_split: bool = library().llmpart_bundle_is_split(bundle)
        self.vocab_size: int = library().llmpart_bundle_vocab_size(bundle)
        self.context_length: int = library().llmpart_bundle_context_length(bundle)
        """The most tokens of a text; 0: unknown."""

    def encode(self, text: str) -> array.array[int]:
        """Return the tokens of a text; numpy.asarray() takes them without a copy."""
        return filled(library().llmpart_encode, self._bundle, c_text(text))

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> array.array[int]:
        """Return the tokens of a conversation, a list of {"role": ..., "content": ...}, by the chat template."""
        texts = [(c_text(message["role"]), c_text(message["content"])) for message in messages]
        return filled(library().llmpart_encode_chat, self._bundle, ffi.new("llmpart_message[]", texts), len(texts))

    def decode(self, tokens: Tokens) -> str:
        """Return the text of tokens."""
        given = c_tokens(tokens)
        size = library().llmpart_decode(self._bundle, given, len(given), ffi.NULL, 0)
        if size < 0:
            raise last_error()
        text = ffi.new("char[]", size + 1)
        library().llmpart_decode(self._bundle, given, len(given), text, size + 1)
        return bytes(ffi.buffer(text, size)).decode("utf-8", "replace")

    def generate(
        self,
        prompt: str | None = None,
        *,
        tokens: Tokens | None = None,
        n: int = 128,
        cloud: str | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        mode: str = "exact",
        **options: Any,
    ) -> Generation:
        """Continue a text or tokens by at most `n` tokens.

        `cloud` is the worker, "HOST:PORT"; without one this process runs both sides. Without temperature, top_k and
        top_p the model's own files decide on sampling. `mode` is exact, threshold or standalone, for early exits. The
        other options are the fields of llmpart_session_options: threads, ignore_eos, theta, key_file, ca_file.
        A contiguous NumPy array of int32 is read without a copy and must not change before the last token.
        """
        source: Tokens | None = self.encode(prompt) if prompt is not None and tokens is None else tokens
        if source is None or prompt is not None and tokens is not None:
            raise TypeError("generate takes either a prompt or tokens")
        if n < 1:
            raise ValueError(f"n is at least 1, not {n}")
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        given = c_tokens(source)
        sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        usual = all(value is None for value in sampling.values())
        fields = {**sampling, "uses_model_sampling": usual, "seed": seed, "mode": MODES[mode], **options}
        settings = Struct("llmpart_session_options", cloud=cloud, max_tokens=n, **fields)
        session = library().llmpart_session_open(self._bundle, settings.pointer)
        if not session:
            raise last_error()
        return Generation(Run(self._bundle, session, given))

    def worker(self, listen: str | None = None, **options: Any) -> Worker:
        """Serve the cloud's side at "HOST:PORT", or at a free port of 127.0.0.1.

        The other options are the fields of llmpart_worker_options, such as threads and key_file.
        """
        return Worker(self, listen=listen, **options)


def compile(
    model: str | os.PathLike[str],
    *,
    device: str | os.PathLike[str],
    cloud: str | os.PathLike[str] | None = None,
    link: str | os.PathLike[str] | None = None,
    ttft: str | float | None = None,
    tpot: str | float | None = None,
    out: str | os.PathLike[str] | None = None,
    **options: Value | list[str],
) -> Bundle:
    """Plan a model, write code and weights of both sides to the folder `out` (MODEL.llmpart), and open it.

    Takes the options of `plan`, and all others of `llmpart compile`: `exits="3,6"`, `O=1`, `check=True`. The result's
    `plan` is the plan.
    """
    folder = Path(out or Path(model).name.removesuffix(".onnx").removesuffix(".gguf") + ".llmpart")
    machines: dict[str, Value] = {"device": device, "cloud": cloud, "link": link, "ttft": ttft, "tpot": tpot}
    plan = run_compile(model, "-o", folder, *words({**machines, **options}))
    bundle = Bundle(folder)
    bundle.plan = plan
    return bundle
