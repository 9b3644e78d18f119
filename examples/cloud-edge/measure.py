"""Runs llmpart in the strategies of the study, and takes seconds by part, bytes, requests and tokens from what it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Figures:
    """Of one generation, or means over some."""

    total_s: float = 0
    edge_s: float = 0
    cloud_s: float = 0
    comm_s: float = 0  # without:
    connect_s: float = 0
    up: float = 0  # bytes
    down: float = 0
    requests: float = 0
    tokens: list[int] = field(default_factory=list)  # of one


FIGURES = ("total_s", "edge_s", "cloud_s", "comm_s", "connect_s", "up", "down", "requests")


def combine(parts: list[tuple[float, Figures]]) -> Figures:
    """The weighted sum."""
    return Figures(**{key: sum(weight * getattr(part, key) for weight, part in parts) for key in FIGURES})


def mean(parts: list[Figures]) -> Figures:
    return combine([(1 / len(parts), part) for part in parts])


@dataclass(frozen=True)
class Link:
    name: str
    rtt_ms: float
    up_mbit: float
    down_mbit: float

    @property
    def text(self) -> str:
        return f"rtt={self.rtt_ms:g}ms,up={self.up_mbit:g}Mbit/s,down={self.down_mbit:g}Mbit/s"


def call(command: list[object]) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"study: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


class Worker:
    """The cloud's process; its bundle stays in memory, as a service's would."""

    def __init__(self, llmpart: Path, bundle: Path, threads: int):
        self.process = subprocess.Popen([llmpart, "worker", bundle, "--listen=127.0.0.1:0", f"--threads={threads}"], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if not line.startswith("listening on "):
            sys.exit(f"study: the worker says: {line}")
        self.address = line.split()[-1]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()


@dataclass(frozen=True)
class Runner:
    llmpart: Path
    tokens: int
    threads: int

    def run(self, bundle: Path, prompt: list[int], worker: Worker | None, link: Link | None, *options: str, tokens: int | None = None) -> Figures:
        command = [self.llmpart, "run", bundle, "--tokens=" + ",".join(map(str, prompt)), "-n", tokens or self.tokens, "--ignore-eos",
                   f"--threads={self.threads}", "--cloud-timeout=60s", "-o", "json", *options]
        if worker:
            command.append(f"--cloud={worker.address}")
        if link:
            command.append(f"--link={link.text}")
        # On a busy machine the device may not wait for an answer and go on without the cloud: that is no measurement.
        for _ in range(3):
            got = json.loads(call(command))
            if not got["fallbacks"]:
                break
        else:
            sys.exit(f"study: {got['fallbacks']} tokens without the cloud's answer")
        seconds = {part: got[f"{part}_ms"] / 1e3 for part in ("total", "device", "cloud", "comm", "connect")}
        return Figures(seconds["total"], seconds["device"], seconds["cloud"], seconds["comm"] - seconds["connect"], seconds["connect"], got["bytes_up"],
                       got["bytes_down"], got["cloud_requests"], got["tokens"])

    def naive(self, bundle: Path, prompt: list[int], full: list[int], worker: Worker, link: Link, samples: int = 5) -> Figures:
        """For each token both halves run over the whole text, and all of its rows go up. Really run for some of the tokens; those between are
        interpolated. Bytes of rows are exact, since they are linear in the length."""
        at = sorted({round(i * (self.tokens - 1) / (samples - 1)) for i in range(samples)})
        runs = [self.run(bundle, prompt + full[:i], worker, link, "--mode=full", tokens=1) for i in at]
        weights = [0.0] * len(at)
        for i in range(self.tokens):
            right = next(j for j, position in enumerate(at) if position >= i)
            left = max(right - 1, 0)
            share = 1.0 if at[right] == i else (i - at[left]) / (at[right] - at[left])
            weights[right] += share
            weights[left] += 1 - share
        return combine(list(zip(weights, runs)))

    def cloud_only(self, bundle: Path, prompt: list[int], worker: Worker, link: Link) -> Figures:
        """The whole model in the cloud, tokens streamed back. Its computing is measured; the link is added by formula: one round trip, 4 bytes a token."""
        got = self.run(bundle, prompt, worker, None, "--mode=full")
        up, down = 4 * len(prompt), 4 * self.tokens
        comm = link.rtt_ms / 1e3 + 8 * up / (link.up_mbit * 1e6) + 8 * down / self.tokens / (link.down_mbit * 1e6)
        return Figures(got.cloud_s + comm, 0, got.cloud_s, comm, 0, up, down, 1, got.tokens)

    def agreement(self, bundle: Path, out: Path, texts: list[tuple[list[int], list[int]]], theta: float | None) -> float:
        """Share of tokens that the full model would give after the same text; theta None: tokens of the last exit only."""
        lines = [json.dumps({"tokens": prompt + made[:-1], "prompt": len(prompt)}) for prompt, made in texts]
        path = out / "texts.jsonl"
        path.write_text("\n".join(lines) + "\n")
        got = json.loads(call([self.llmpart, "calibrate", bundle, f"--data={path}", f"--at={0 if theta is None else theta}", f"--threads={self.threads}", "-o", "json"]))
        path.unlink()
        return got["exits"][-1]["alone"][0]["agreement"] if theta is None else 1 - got["at"][0]["disagreement"]

