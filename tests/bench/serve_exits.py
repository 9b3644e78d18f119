"""CPU time for each token of `llmpart serve` over a split with early exits, server and worker apart.

    python3 tests/bench/serve_exits.py BUNDLE LLMPART[:THETA]... [--clients 1,8,32] [--rounds 2]

Each LLMPART is a command, with a THETA at which exits give tokens. The commands take turns under the load of
serve_load.py (4 requests of 64 tokens for each client), so that other work on the machine meets all of them."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TOKENS, REQUESTS = 64, 4


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def measure(binary, theta, bundle, clients, folder):
    config = Path(folder, "serve.yaml")
    config.write_text(f"split: {{ bundle: {bundle}, threads: 1{f', theta: {theta}' if theta else ''} }}\n")
    server = subprocess.Popen([binary, "serve", config, "--listen=127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    address = next(found.group(1) for line in server.stderr if (found := re.search(r"listening on (\S+)", line)))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    time.sleep(1)
    pids = [server.pid, *children(server.pid)]
    before = [cpu(pid) for pid in pids]
    load = [sys.executable, Path(__file__).with_name("serve_load.py"), f"http://{address}", "split", str(clients), str(TOKENS), str(REQUESTS)]
    rows = subprocess.run(load, capture_output=True, text=True, check=True).stdout.splitlines()
    spent = [cpu(pid) - at for pid, at in zip(pids, before)]
    server.terminate()
    server.wait()
    made = TOKENS * (2 * clients * REQUESTS + 1)
    cells = [cell.strip() for cell in rows[-1].strip("|").split("|")]
    return [f"{1e3 * spent[0] / made:.3f} ms", f"{1e3 * sum(spent[1:]) / made:.3f} ms", cells[1], cells[3], cells[4], cells[7]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("command", nargs="+")
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    head = ("clients", "command", "CPU a token, server", "worker", "tokens/s", "TTFT median", "TTFT 95 %", "slowest client")
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for clients in (int(n) for n in args.clients.split(",")):
                for command in args.command:
                    binary, _, theta = command.partition(":")
                    cells = measure(binary, theta, args.bundle.resolve(), clients, folder)
                    print("| " + " | ".join([str(clients), command, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
