"""Measures the cost of the link on one machine: ms per token of one process, of two over loopback, and of two with TLS and a key.

    python3 tests/bench/link_overhead.py LLMPART MODEL.onnx|BUNDLE [--cut=N] [--tokens=96] [--rounds=7] [--threads=1]

The bundle is cut at a layer, so that each token crosses the link and comes back. All three run the same bundle with the same worker
process, in rounds A B C A B C; figures are medians over the rounds. Ratios are of one run: see docs/measurements/workers.md. The exit status is 4
when splitting costs more than 10 % of a token, or TLS more than 5 % on top."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = {"split": 1.10, "tls": 1.05}


class Worker:
    """A worker of the bundle, with its address."""

    def __init__(self, llmpart: str, bundle: Path, threads: int, options: list[str]):
        command = [llmpart, "worker", str(bundle), "--listen=127.0.0.1:0", f"--threads={threads}", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stderr.readline().split()[-1]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def make_keys(folder: Path) -> tuple[list[str], list[str]]:
    """Options of a worker and of a device that hold a key and a certificate."""
    key, cert, cert_key = folder / "link.key", folder / "cert.pem", folder / "cert.key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    key.chmod(0o600)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=cloud", "-keyout", cert_key, "-out", cert], check=True, capture_output=True)
    return ([f"--key-file={key}", f"--cert={cert}", f"--cert-key={cert_key}"], [f"--key-file={key}", f"--ca={cert}"])


def measure(llmpart: str, bundle: Path, tokens: int, threads: int, options: list[str]) -> float:
    """ms per output token of one run."""
    command = [llmpart, "run", str(bundle), "--tokens=1,2,3,4", "-n", str(tokens), "--ignore-eos", "--mode=full", "-o", "json",
               f"--threads={threads}", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tpot_ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("model", type=Path)
    parser.add_argument("--cut", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = args.model if args.model.is_dir() else folder / "bench.llmpart"
        if bundle != args.model:
            subprocess.run([args.llmpart, "compile", str(args.model), "--device=host", "--cloud=host", "--link=loopback",
                            "--scheduler=cut", f"--cut={args.cut}", "-o", str(bundle)], check=True, capture_output=True)
        there, here = make_keys(folder)
        plain = Worker(args.llmpart, bundle, args.threads, [])
        tls = Worker(args.llmpart, bundle, args.threads, there)
        ways = {"one": ["--in-process"], "split": [f"--cloud={plain.address}"], "tls": [f"--cloud={tls.address}", *here]}
        rounds = [{way: measure(args.llmpart, bundle, args.tokens, args.threads, options) for way, options in ways.items()}
                  for _ in range(args.rounds)]
        plain.stop()
        tls.stop()
    ms = {way: statistics.median(figures[way] for figures in rounds) for way in ways}
    ratios = {"split": statistics.median(figures["split"] / figures["one"] for figures in rounds),
              "tls": statistics.median(figures["tls"] / figures["split"] for figures in rounds)}
    print(f"one process {ms['one']:.3f} ms/token, two {ms['split']:.3f}, with TLS and key {ms['tls']:.3f}")
    print(f"two / one {ratios['split']:.3f} (at most {LIMITS['split']}), TLS / two {ratios['tls']:.3f} (at most {LIMITS['tls']})")
    return 4 if any(ratios[what] > LIMITS[what] for what in LIMITS) else 0


if __name__ == "__main__":
    sys.exit(main())
