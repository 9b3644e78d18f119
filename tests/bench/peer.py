"""Measures a runtime of Python as compare_types.py's SPEC asks for: prefill of each prompt and decode after the first.

    python tests/bench/peer.py onnxruntime|genai|openvino MODEL -t THREADS -r ROUNDS -n TOKENS -p 128,512

MODEL is a file of an exporter's graph with KV caches (onnxruntime; --int8 or --int4 quantise it into the file beside it that the
option names, once), a folder of onnxruntime-genai's model builder (genai), or what openvino-genai's LLMPipeline reads,
for instance a GGUF file (openvino). Prints the row `tag,threads,load,first,PROMPT..,DECODE` with tokens per second, medians of the rounds.
Needs PyPI's onnxruntime, onnxruntime-genai or openvino-genai.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Protocol

import numpy as np


class Runtime(Protocol):
    def measure(self, prompt: int, tokens: int) -> tuple[float, float]:
        """Tokens per second of a prompt, and of `tokens` tokens after it."""


def prompt_ids(count: int, first: int = 0) -> np.ndarray:
    return (np.arange(first, first + count, dtype=np.int64) * 7919 + 13) % 30011


class OnnxRuntime:
    """The exporter's graph; its caches go from output to input without a copy."""

    def __init__(self, model: Path, threads: int) -> None:
        from compare_ort import Peer

        self.peer = Peer(model, threads)

    def measure(self, prompt: int, tokens: int) -> tuple[float, float]:
        start = time.perf_counter()
        token, cache = self.peer.step(prompt_ids(prompt)[None], 0, self.peer.empty_cache())
        middle = time.perf_counter()
        for at in range(prompt, prompt + tokens):
            token, cache = self.peer.step(np.array([[token]], np.int64), at, cache)
        return prompt / (middle - start), tokens / (time.perf_counter() - middle)


class Genai:
    def __init__(self, model: Path, threads: int) -> None:
        import onnxruntime_genai as og

        config = og.Config(str(model))
        options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self.og, self.model = og, og.Model(config)

    def measure(self, prompt: int, tokens: int) -> tuple[float, float]:
        params = self.og.GeneratorParams(self.model)
        params.set_search_options(max_length=prompt + tokens + 2, min_length=prompt + tokens + 2, do_sample=False)
        generator = self.og.Generator(self.model, params)
        ids = prompt_ids(prompt).astype(np.int32)
        start = time.perf_counter()
        generator.append_tokens(ids)
        generator.generate_next_token()
        middle = time.perf_counter()
        for _ in range(tokens):
            generator.generate_next_token()
        return prompt / (middle - start), tokens / (time.perf_counter() - middle)


class OpenVino:
    """Its own clock: the time to the first token, and the mean time of the others. Each prompt is new to its caches."""

    def __init__(self, model: Path, threads: int) -> None:
        import openvino as ov
        import openvino_genai as og

        self.ov, self.og, self.begin = ov, og, 0
        self.pipeline = og.LLMPipeline(str(model), "CPU", INFERENCE_NUM_THREADS=threads)

    def measure(self, prompt: int, tokens: int) -> tuple[float, float]:
        self.begin += 1009
        ids = prompt_ids(prompt, self.begin)[None]
        config = self.og.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = tokens + 1
        config.ignore_eos, config.do_sample = True, False
        inputs = self.og.TokenizedInputs(self.ov.Tensor(ids), self.ov.Tensor(np.ones_like(ids)))
        metrics = self.pipeline.generate(inputs, config).perf_metrics
        decode = 1e3 / metrics.get_tpot().mean if tokens else float("nan")
        return 1e3 * prompt / metrics.get_ttft().mean, decode


def quantised(model: Path, bits: int) -> Path:
    """The graph with int8 weights and dynamic quantisation, or with 4 bits in blocks of 32 (MatMulNBits); made once."""
    path = model.with_name(f"{model.stem}-int{bits}.onnx")
    if path.exists():
        return path
    if bits == 8:
        from compare_ort import quantised as make

        return make(model, path)
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    work = MatMulNBitsQuantizer(onnx.load(str(model)), block_size=32, is_symmetric=True, accuracy_level=4)
    work.process()
    work.model.save_model_to_file(str(path), use_external_data_format=True)
    return path


RUNTIMES = {"onnxruntime": OnnxRuntime, "genai": Genai, "openvino": OpenVino}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("model", type=Path)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--int4", action="store_true")
    parser.add_argument("-t", type=int, default=1)
    parser.add_argument("-r", type=int, default=1)
    parser.add_argument("-n", type=int, default=64)
    parser.add_argument("-p", default="128,512")
    args = parser.parse_args()
    model = quantised(args.model, 8 if args.int8 else 4) if args.int8 or args.int4 else args.model
    begin = time.perf_counter()
    runtime: Runtime = RUNTIMES[args.runtime](model, args.t)
    load = time.perf_counter() - begin
    prompts = [int(p) for p in args.p.split(",")]
    runtime.measure(prompts[0], 2)
    first = time.perf_counter() - begin
    rounds = [[runtime.measure(p, args.n if p == prompts[0] else 1) for p in prompts] for _ in range(args.r)]
    speeds = [statistics.median(r[i][0] for r in rounds) for i in range(len(prompts))]
    decode = statistics.median(r[0][1] for r in rounds)
    print(f"{args.runtime},{args.t},{load:.3f},{first:.3f}," + ",".join(f"{s:.2f}" for s in [*speeds, decode]))


if __name__ == "__main__":
    main()
