"""Measures `llmpart serve` beside llama.cpp's batched decoding under the same load, in one run, and prints one table.

    python tests/bench/serve_beside.py --llmpart build/release/tools/llmpart --node-modules DIR
        --pair f32 f32.llmpart f32.gguf --pair int8 int8.llmpart q8_0.gguf [--clients 1,8,32,128] [--tokens 24]
        [--threads 2] [--timeout 300]

DIR holds npm's node-llama-cpp, over which node_llama_server.mjs serves; `npm install node-llama-cpp` makes it. Each pair
is a bundle and a GGUF file of the same model. The servers run one after the other, for one number of clients after the
other, with serve_load.py as the client, so that other work on the machine meets both. Memory is the peak of the process.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD = ("types", "clients", "server", "tokens/s", "TTFT median", "TTFT 95 %", "TPOT", "CPU a token", "slowest client",
        "memory")


def start(command, pattern):
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seen = ""
    for line in server.stdout:
        seen += line
        found = re.search(pattern, line)
        if found:
            return server, found.group(1)
    sys.exit(f"{command[0]} does not start: {seen}")


def memory(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+)", text).group(1))
    return f"{peak / 1024:.0f} MiB"


def measure(server, address, clients, args):
    """The cells of serve_load.py's row after tokens/s and its ratio, and the peak of memory."""
    command = [sys.executable, HERE / "serve_load.py", f"http://{address}", "edge", str(clients), str(args.tokens), "1",
               str(server.pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
        rows = [line for line in done.stdout.splitlines() if line.startswith(f"| {clients} |")]
        cells = [cell.strip() for cell in rows[0].strip("|").split("|")] if rows else None
        figures = [cells[1], *cells[3:]] if cells else ["failed", *["-"] * 5]
    except subprocess.TimeoutExpired:
        figures = [f"over {args.timeout} s", *["-"] * 5]
    return [*figures, memory(server.pid)]


def servers(args, bundle, gguf, clients, folder):
    config = Path(folder, "serve.yaml")
    config.write_text(f"edge: {{ bundle: {Path(bundle).resolve()}, threads: {args.threads}, parallel: {max(64, clients)} }}\n")
    yield "llmpart", [args.llmpart, "serve", config, "--listen=127.0.0.1:0"]
    # node finds packages beside the script or above it
    script = Path(folder, "node_llama_server.mjs")
    shutil.copy(HERE / script.name, script)
    modules = Path(folder, "node_modules")
    if not modules.exists():
        modules.symlink_to(args.node_modules.resolve())
    per_sequence = 64 * ((args.tokens + 32 + 63) // 64)
    yield "llama.cpp", [args.node, "--preserve-symlinks", script, str(Path(gguf).resolve()), "0", str(min(clients, 64)),
                        str(args.threads), str(per_sequence)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("--node", default="node")
    parser.add_argument("--node-modules", type=Path, required=True)
    parser.add_argument("--pair", nargs=3, action="append", required=True, metavar=("NAME", "BUNDLE", "GGUF"))
    parser.add_argument("--clients", default="1,8,32,128")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each row")
    args = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|", flush=True)
    for name, bundle, gguf in args.pair:
        for clients in (int(n) for n in args.clients.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                for label, command in servers(args, bundle, gguf, clients, folder):
                    server, address = start(command, r"listening on (\S+)")
                    try:
                        cells = measure(server, address, clients, args)
                    finally:
                        server.kill()
                        server.wait()
                    print("| " + " | ".join([name, str(clients), label, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
