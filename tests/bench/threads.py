"""Measures one thread against several, beside processes that keep cores busy: `llmpart bench` in fresh processes.

    python tests/bench/threads.py --llmpart build/release/tools/llmpart BUNDLE
        [--threads 1,2] [--prompt 14] [--tokens 64] [--rounds 25] [--busy 1] [--realtime] [--nice 19] [--autogroup -19]

In a round each number of threads runs once, in turn. The table shows medians, and the median over the rounds of each
number's speed divided by that of the first number. All processes belong to one session, because Linux compares nice
values only within a session where the scheduler groups tasks by session (/proc/sys/kernel/sched_autogroup_enabled).
--autogroup sets the nice value of that session against all others, which shields the measurement from them and needs
the right to lower it. Busy processes beside nice 19 take most of the session's share with them; under --realtime they
do not, so that other sessions disturb the measurement less. To measure under a quota, start the command in a control
group that sets one.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rounds import Speeds, bench_command


def measure(args: argparse.Namespace, threads: int) -> Speeds:
    return bench_command(["nice", "-n", str(args.nice), args.llmpart], args.bundle, args.prompt, args.tokens, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmpart", required=True)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--threads", default="1,2", help="the first number is compared with the others")
    parser.add_argument("--prompt", type=int, default=14)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--busy", type=int, default=1, help="processes that each keep one core busy, at nice 0")
    parser.add_argument("--realtime", action="store_true", help="run those under chrt -f 1")
    parser.add_argument("--nice", type=int, default=19, help="of llmpart")
    parser.add_argument("--autogroup", type=int, help="nice value of the session")
    args = parser.parse_args()
    if os.getsid(0) != os.getpid():
        sys.exit(subprocess.call([sys.executable, *sys.argv], start_new_session=True))
    if args.autogroup is not None:
        Path("/proc/self/autogroup").write_text(str(args.autogroup))
    counts = [int(count) for count in args.threads.split(",")]
    loop = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    realtime = ["chrt", "-f", "1"] if args.realtime else []
    busy = [subprocess.Popen([*realtime, sys.executable, "-c", loop]) for _ in range(args.busy)]
    try:
        rounds = [[measure(args, count) for count in counts] for _ in range(args.rounds)]
    finally:
        for process in busy:
            process.kill()
    print("threads  test        tok/s   25 %     75 %  ratio")
    for at, name in enumerate((f"pp{args.prompt}", f"tg{args.tokens}")):
        for i, count in enumerate(counts):
            low, middle, high = statistics.quantiles((run[i][at] for run in rounds), n=4)
            ratio = statistics.median(run[i][at] / run[0][at] for run in rounds)
            print(f"{count:7}  {name:6} {middle:10.0f} {low:8.0f} {high:8.0f} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
