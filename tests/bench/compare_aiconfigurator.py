"""Compares fleets of `llmpart fleet` with those of NVIDIA's aiconfigurator (PyPI), which has measured operators.

    python compare_aiconfigurator.py LLMPART

Both get the same models, GPUs, lengths, rate and limits. aiconfigurator's limits are of means, without queues; ours are
of p95 with Poisson arrivals. Its int8 models multiply in FP8, ours in f16: their passes are compared with its passes for
int8 weights and f16. Prints the fleets, and the times of passes: over tokens of 1, 32 and 128 sessions, and over 256 rows
of a prompt.
"""
import json
import logging
import pathlib
import subprocess
import sys
import tempfile

from aiconfigurator.cli.api import cli_estimate, cli_recommend

PROMPT, ANSWER = 1024, 256
SPEC = """decoder: {{ {shape}, context: 8192 }}
load: {{ rate: {rate} }}
lengths: [{{ isl: {prompt}, osl: {answer} }}]
classes: [{{ name: all, device: raspberry-pi-5, link: lan, limits: {{ ttft: {{ p95: {ttft}ms }}, tpot: {{ p95: {tpot}ms }} }} }}]
machines: [{machine}]
dtypes: {{ device: f16, cloud: {dtype} }}
kv_dtype: f16
requests: 20000
"""
MODELS = (
    # aiconfigurator's name, shape, type of weights, requests/s, TTFT and TPOT in ms, its name and type for passes
    ("meta-llama/Meta-Llama-3.1-8B", "layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256", "f16",
     200, 1000, 30, "meta-llama/Meta-Llama-3.1-8B", "bfloat16"),
    ("Qwen/Qwen3-8B", "layers: 36, hidden: 4096, ffn: 12288, heads: 32, kv_heads: 8, vocab: 151936", "f16", 200, 1000, 30,
     "Qwen/Qwen3-8B", "bfloat16"),
    ("nvidia/Llama-3.1-70B-Instruct-FP8", "layers: 80, hidden: 8192, ffn: 28672, heads: 64, kv_heads: 8, vocab: 128256",
     "int8", 20, 3000, 100, "meta-llama/Meta-Llama-3.1-70B", "int8_wo"),
)


def ours(llmpart, machine, model):
    _, shape, dtype, rate, ttft, tpot, *_ = model
    with tempfile.TemporaryDirectory() as folder:
        spec, out = pathlib.Path(folder, "fleet.yaml"), pathlib.Path(folder, "fleet.json")
        spec.write_text(SPEC.format(shape=shape, rate=rate, prompt=PROMPT, answer=ANSWER, ttft=ttft, tpot=tpot,
                                    machine=machine, dtype=dtype))
        run = subprocess.run([llmpart, "fleet", spec, "-o", out], capture_output=True, text=True)
        if run.returncode:
            return None, run.stderr.strip().split("error: ")[-1]
        report = json.loads(out.read_text())
    pool, times = report["pools"][0], report["classes"][0]["times"]
    least = round(report["fleet"]["lower_bound"] / pool["usd_per_month"] * pool["count"])
    option = report["certificate"]["options"][pool["option"]]
    return option, (f"{pool['count']}, at least {least} | {rate / pool['count']:.1f} | {times['ttft_ms']['p95']:.0f} / "
                    f"{times['tpot_ms']['p95']:.1f}")


def theirs(system, model):
    name, _, _, rate, ttft, tpot, *_ = model
    found = cli_recommend(model_path=name, system=system, target_request_rate=rate, isl=PROMPT, osl=ANSWER, ttft=ttft,
                          tpot=tpot, backend="vllm", strict_sla=True).best_configs
    text = []
    for kind in ("agg", "disagg"):
        one = found[kind].iloc[0] if kind in found and len(found[kind]) else None
        text += ["none"] if one is None else [f"{one['total_gpus_needed']:.0f}"]
    one = found["agg"].iloc[0]
    return " / ".join(text) + (f" | {one['seq/s/gpu']:.1f}, tp {one['tp']} | {one['ttft']:.0f} / {one['tpot']:.1f}")


def passes(system, model, option):
    def estimate(mode, **more):
        return cli_estimate(model[6], system, mode=mode, backend_name="vllm", database_mode="HYBRID",
                            gemm_quant_mode=model[7], **more).get()

    at = {rows: i for i, rows in enumerate(option["rows"])}
    cells = []
    for tokens in (1, 32, 128):
        other = estimate("static_gen", isl=PROMPT, osl=ANSWER, batch_size=tokens)["tpot"]
        cells.append((1e3 * option["token_s"][at[tokens]], other))
    middle = (PROMPT - 256) // 2  # the mean context of a prompt's rows
    other = estimate("static_ctx", isl=middle + 256, prefix=middle, osl=2, batch_size=1)["ttft"]
    cells.append((1e3 * option["prompt_s"][at[256]], other))
    return " | ".join(f"{mine:.1f} / {other:.1f} = {mine / other:.2f}" for mine, other in cells)


def main():
    logging.disable(logging.CRITICAL)
    counts, times = [], []
    for model in MODELS:
        for machine, system in (("h100", "h100_sxm"), ("h200", "h200_sxm")):
            option, fleet = ours(sys.argv[1], machine, model)
            label = f"| {model[0].split('/')[1]}, {machine}"
            counts.append(f"{label}, {model[3]}/s, {model[4]} / {model[5]} ms | {fleet} | {theirs(system, model)} |")
            if option:
                times.append(f"{label} | {passes(system, model, option)} |")
    print("| model, GPU, rate, limits of TTFT / TPOT | GPUs | /s each | p95 in ms | theirs, aggregated / divided | /s each |"
          " mean in ms |\n| --- | --- | --- | --- | --- | --- | --- |", *counts, "",
          "| pass in ms: ours / theirs | 1 token | 32 tokens | 128 tokens | 256 rows of a prompt |\n"
          "| --- | --- | --- | --- | --- |", *times, sep="\n")


main()
