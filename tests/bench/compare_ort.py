"""Measures llmpart beside ONNX Runtime in one run, as ratios: prefill and decode of a KV-cache export, batch 1.

    python tests/bench/compare_ort.py --llmpart build/release/tools/llmpart --model MODEL.onnx [--bundle B.llmpart]
        [--threads 1,2] [--prompt 512] [--tokens 64] [--rounds 3] [--int8]

With --int8 ONNX Runtime runs its own dynamic quantisation of the graph (int8 weights, activations rounded for each
product), and llmpart, unless a bundle is given, int8 weights with --activations=auto.

Needs PyPI's onnxruntime and numpy. Rounds alternate A B A B, one fresh process of llmpart each; the table shows medians.
ONNX Runtime runs the exporter's graph with all its optimisations; its caches go from output to input without a copy.
"""

import argparse
import functools
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from rounds import Speeds, bench_command, compare


class Peer:
    """The exporter's graph in ONNX Runtime."""

    def __init__(self, model: Path, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.past = [name for name in self.inputs if name.startswith("past")]

    def empty_cache(self) -> list[ort.OrtValue]:
        shapes = [[d if isinstance(d, int) else (1 if i == 0 else 0) for i, d in enumerate(self.inputs[n].shape)]
                  for n in self.past]
        return [ort.OrtValue.ortvalue_from_numpy(np.zeros(s, np.float32)) for s in shapes]

    def step(self, ids: np.ndarray, at: int, cache: list[ort.OrtValue]) -> tuple[int, list[ort.OrtValue]]:
        count = ids.shape[1]
        feed = {"input_ids": ids, "attention_mask": np.ones((1, at + count), np.int64),
                "position_ids": np.arange(at, at + count, dtype=np.int64)[None]}
        binding = self.session.io_binding()
        for name, value in feed.items():
            if name in self.inputs:
                binding.bind_cpu_input(name, value)
        for name, value in zip(self.past, cache):
            binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        values = dict(zip(self.outputs, binding.get_outputs()))
        token = int(values["logits"].numpy()[0, -1].argmax())
        return token, [v for n, v in values.items() if n.startswith("present")]

    def measure(self, prompt: int, tokens: int) -> Speeds:
        """Tokens per second of prefill and of decode after 128 tokens, as `llmpart bench` counts them."""
        ids = (np.arange(prompt, dtype=np.int64) * 7919 % 997)[None]
        self.step(ids[:, :8], 0, self.empty_cache())
        start = time.perf_counter()
        self.step(ids, 0, self.empty_cache())
        prefill = prompt / (time.perf_counter() - start)
        token, cache = self.step(ids[:, :1], 0, self.empty_cache())
        start = time.perf_counter()
        for at in range(1, 1 + tokens):
            token, cache = self.step(np.array([[token]], np.int64), at, cache)
        return prefill, tokens / (time.perf_counter() - start)


def quantised(model: Path, path: Path) -> Path:
    """The graph with dynamic quantisation, one scale for each column of a weight."""
    from onnxruntime.quantization import QuantType, quantize_dynamic  # imports onnx, which only this needs

    quantize_dynamic(str(model), str(path), weight_type=QuantType.QInt8, per_channel=True,
                     use_external_data_format=model.with_suffix(".onnx.data").exists())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--int8", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = args.bundle or Path(folder) / "model.llmpart"
        if not args.bundle:
            options = ["--dtype-device=int8", "--activations=auto"] if args.int8 else []
            subprocess.run([args.llmpart, "compile", str(args.model), "--device=host", *options, "-o", str(bundle)],
                           check=True)
        model = quantised(args.model, Path(folder) / "int8.onnx") if args.int8 else args.model
        compare("onnxruntime", args.prompt, args.tokens, [int(t) for t in args.threads.split(",")], args.rounds,
                lambda threads: bench_command([args.llmpart], bundle, args.prompt, args.tokens, threads),
                lambda threads: functools.partial(Peer(model, threads).measure, args.prompt, args.tokens))


if __name__ == "__main__":
    main()
