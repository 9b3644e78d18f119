"""Plans a mixture of Qwen3-30B-A3B's shape over a device and a cloud, with and without halves of its experts apart.

    python tests/bench/hot_experts.py LLMPART [--hot 8,16,32] [--skew 0.8] [-- OPTIONS OF COMPILE]

Of 128 experts a token chooses 8; the one of rank r as often as r^-skew says, at most always, in another order in each layer. No
weight is needed. Prints TTFT, TPOT, the cost of a million requests, the weights of the device, messages per token and the gap of
the plan, for layers (the scheduler that cuts between two of them), for the exact plan, and for it with each number of hot experts.
check-plan confirms each report.
"""

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

LAYERS, EXPERTS, CHOSEN = 48, 128, 8
CONFIG = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
          "moe_intermediate_size": 768, "num_hidden_layers": LAYERS, "num_attention_heads": 32, "num_key_value_heads": 4,
          "head_dim": 128, "vocab_size": 151936, "num_experts": EXPERTS, "num_experts_per_tok": CHOSEN, "norm_topk_prob": True,
          "rms_norm_eps": 1e-6, "rope_theta": 1000000, "max_position_embeddings": 40960, "decoder_sparse_step": 1,
          "mlp_only_layers": [], "hidden_act": "silu", "torch_dtype": "bfloat16"}
PAIR = ["--device=jetson-orin", "--device-memory=8GiB", "--cloud=l4", "--link=lan", "--dtype-device=int4", "--dtype-cloud=int4",
        "--objective=cost", "--ttft=4s", "--tpot=60ms"]


def shares(skew: float) -> list[float]:
    """Sums to CHOSEN; none is more than 1."""
    share = [1 / rank**skew for rank in range(1, EXPERTS + 1)]
    for _ in range(100):
        scale = CHOSEN / sum(share)
        share = [min(1.0, s * scale) for s in share]
    return share


def counts(skew: float) -> dict:
    weights = []
    for layer in range(LAYERS):
        own = shares(skew)
        random.Random(layer).shuffle(own)
        weights += [{"name": f"layers.{layer}.mlp.experts.0.{part}.weight", "chosen": own} for part in ("up_proj", "down_proj")]
    return {"schema": "llmpart.experts/1", "bundle": "none", "data_sha256": "none", "documents": 0, "tokens": 0, "weights": weights}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llmpart")
    parser.add_argument("--hot", default="8,16,32")
    parser.add_argument("--skew", type=float, default=0.8)
    parser.add_argument("options", nargs="*", default=PAIR)
    args = parser.parse_args()
    rows = [("cut between layers", ["--scheduler=layer"]), ("exact", [])]
    rows += [(f"exact, {hot} hot experts", [f"--hot-experts={hot}"]) for hot in args.hot.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        model, experts, report = Path(folder, "model"), Path(folder, "experts.json"), Path(folder, "report.json")
        model.mkdir()
        Path(model, "config.json").write_text(json.dumps(CONFIG))
        experts.write_text(json.dumps(counts(args.skew)))
        print("| plan | TTFT s | TPOT ms | USD/Mreq | device weights GiB | messages per token | gap |\n|" + " --- |" * 7)
        for name, options in rows:
            subprocess.run([args.llmpart, "compile", model, f"--experts={experts}", *args.options, *options, "--quiet",
                            "--emit=report", "-o", report], check=True)
            subprocess.run([args.llmpart, "check-plan", report], check=True, stdout=subprocess.DEVNULL)
            made = json.loads(report.read_text())
            plan = made["plan"]
            gap = '' if plan.get('gap') is None else f"{100 * plan['gap']:.1f} %"
            print(f"| {name} | {plan['ttft_ms'] / 1e3:.2f} | {plan['tpot_ms']:.1f} | {1e6 * plan['cost_usd']:.1f} | "
                  f"{plan['device_weight_bytes'] / 2**30:.1f} | {plan['messages_decode']} | {gap} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
