"""Compares fleets of `llmpart fleet` with those of vllm-sr-sim (PyPI), for its own distributions of lengths.

    python compare_sr_sim.py LLMPART

Both get the same requests. vllm-sr-sim gets our machine as a profile: the time of a pass over no and over all sessions,
256 rows of a prompt in a pass, as many sessions. Prints for each distribution our machines and p99 of TTFT, what its
simulation says of these machines, and the machines that its closed form asks for.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import fleet_sim
import numpy
from fleet_sim.core.fleet import Fleet, FleetConfig, PoolConfig
from fleet_sim.gpu_profiles.manual import ManualProfile
from fleet_sim.optimizer import analytical
from fleet_sim.workload.synthetic import CdfWorkload, PoissonWorkload

SPEC = """decoder: {{ layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256, context: 400000 }}
load: {{ rate: {rate} }}
lengths: {{ trace: trace.csv }}
classes: [{{ name: all, device: raspberry-pi-5, link: lan, limits: {{ ttft: {{ p99: {limit}ms }} }} }}]
machines: [a100]
dtypes: {{ device: int4, cloud: f16 }}
kv_dtype: f16
requests: 20000
"""


def arrivals(cdf, rate):
    return PoissonWorkload(rate, CdfWorkload(cdf, seed=42), n_requests=20000, seed=42).generate()


def ours(llmpart, folder, cdf, rate, limit):
    rows = [f"{at:.6f},{one.l_in},{one.l_out}\n" for at, one in arrivals(cdf, rate)]
    (folder / "trace.csv").write_text("time_s,input,output\n" + "".join(rows))
    (folder / "fleet.yaml").write_text(SPEC.format(rate=rate, limit=limit))
    subprocess.run([llmpart, "fleet", folder / "fleet.yaml", "-o", folder / "fleet.json"], check=True)
    return json.loads((folder / "fleet.json").read_text())


def profile(report):
    pool = report["pools"][0]
    option = report["certificate"]["options"][pool["option"]]
    most, first = pool["sessions"], option["token_s"][0]
    last = float(numpy.interp(most, option["rows"], option["token_s"]))
    mean = int(report["certificate"]["prompt_tokens"] + report["certificate"]["answer_tokens"])
    return mean, ManualProfile("a100", W=first, H=(last - first) / most, chunk=256, blk_size=16, total_kv_blks=10**9,
                               max_slots=most, cost_per_hr=pool["usd_per_hour"], calibration_ctx=mean)


def main():
    data = pathlib.Path(fleet_sim.__file__).parent / "data"
    print("| lengths, requests/s, limit of p99 TTFT | machines | p99 TTFT | at least | vllm-sr-sim: p99 of these | machines |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, rate, limit in (("azure", 50, 2000), ("lmsys", 100, 1000)):
        cdf = [(int(tokens), float(share)) for tokens, share in json.loads((data / f"{name}_cdf.json").read_text())]
        with tempfile.TemporaryDirectory() as folder:
            report = ours(sys.argv[1], pathlib.Path(folder), cdf, rate, limit)
        pool, (mean, gpu) = report["pools"][0], profile(report)
        pools = [PoolConfig("all", gpu, pool["count"], mean)]
        simulated = Fleet(FleetConfig(pools, router_type="LeastLoadedRouter")).run(arrivals(cdf, rate))
        served, variation, slots, _ = analytical.calibrate(cdf, mean, gpu)
        theirs = analytical.min_gpus_analytical(rate, served, limit / 1e3, variation, n_slots=slots)
        least = round(report["fleet"]["lower_bound"] / pool["usd_per_month"] * pool["count"])
        print(f"| {name}, {rate}, {limit} ms | {pool['count']} | {report['classes'][0]['times']['ttft_ms']['p99']:.0f} ms |"
              f" {least} | {simulated.p99_ttft_ms():.0f} ms | {theirs} |")


main()
