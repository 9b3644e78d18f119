"""Measures llmpart beside llama.cpp in one run, as ratios: prefill and decode of the same shape, batch 1.

    python tests/bench/compare_llama_cpp.py --llmpart build/release/tools/llmpart --bundle B.llmpart
        --llama-bench PATH --gguf MODEL.gguf [--threads 1,2] [--prompt 512] [--tokens 64] [--rounds 3] [--f32-cache]

Needs llama.cpp's own `llama-bench` and a GGUF file of the bundle's model in the same number format. Rounds alternate
A B A B, one fresh process each; the table shows medians. llama.cpp runs with its defaults (f16 KV cache) unless
--f32-cache is given.
"""

import argparse
import json
import subprocess
from pathlib import Path

from rounds import Speeds, bench_command, compare


def llama_bench(args: argparse.Namespace, threads: int) -> Speeds:
    command = [args.llama_bench.resolve(), "-m", args.gguf.resolve(), "-p", str(args.prompt), "-n", str(args.tokens),
               "-r", "1", "-t", str(threads), "-o", "json"]
    if args.f32_cache:
        command += ["-ctk", "f32", "-ctv", "f32"]
    # llama.cpp looks for its CPU kernels in the working directory.
    result = subprocess.run(command, check=True, capture_output=True, text=True, cwd=args.kernels)
    prefill, decode = (row["avg_ts"] for row in json.loads(result.stdout))
    return prefill, decode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--llama-bench", type=Path, required=True)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--kernels", type=Path, help="folder of llama.cpp's CPU kernels, when not beside llama-bench")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--f32-cache", action="store_true")
    args = parser.parse_args()
    compare("llama.cpp", args.prompt, args.tokens, [int(t) for t in args.threads.split(",")], args.rounds,
            lambda threads: bench_command([args.llmpart], args.bundle, args.prompt, args.tokens, threads),
            lambda threads: lambda: llama_bench(args, threads))


if __name__ == "__main__":
    main()
