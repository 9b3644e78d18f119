"""An oracle for plans over more than two places: the problem of a report as a mixed-integer program, solved by HiGHS.

    python tests/oracle/places_milp.py REPORT.json ... [--seconds 60] [--worst RATIO]

Reads nothing but the certificate in a report of schema llmpart.places/1: parts, links, limits and objective. It shares no
code with the planner and needs `highspy` (requirements.txt). For each report it prints a line: the plan's objective, HiGHS's best
objective over plans that divide no part, their ratio, the bound that HiGHS proved, the bound that the report states, and
HiGHS's time.

First it adds up the report's own plan, where it divides no part, and compares it with the report's figures; HiGHS's plan is
added up in the same way. Exit status 1: a sum differs, HiGHS's plan is below the report's bound, or the plan is more than
--worst times HiGHS's.

The program. Each part has one of the pairs of a place for prefill and one for decode. A flow of one unit leads through the
pairs from part to part, and pays the messages between places. A place holds what its parts use, once where several share
it, and the largest activation. KV caches that prefill and decode have in two places move, in one message for each pair of places.
"""

import argparse
import json
import sys
import time

import highspy

STAGES = ("prefill", "decode")


class Problem:
    """The certificate of a report, by part."""

    def __init__(self, report: dict):
        c = report["certificate"]
        names = [place["name"] for place in report["places"]]
        self.count, self.c = len(names), c
        self.shape = [c["shapes"][part["shape"]] for part in c["parts"]]
        self.plan = [(part["prefill"], part["decode"]) for part in c["parts"]]
        self.shared = [[part["prefill_shared"], part["decode_shared"]] for part in c["parts"]]
        self.busy = [c["objective"]["prefill_per_ms"], c["objective"]["decode_per_ms"]]
        self.link, self.move = c["objective"]["link_per_ms"], c["objective"]["move_per_ms"]
        self.limit_ms, self.limit_bytes = c["limits"]["ms"], c["limits"]["bytes"]
        self.message = {(names.index(x["from"]), names.index(x["to"])): (x["message_ms"], x["ms_per_byte"]) for x in report["links"]}
        self.stated, self.lower, self.feasible = c["value"], report["plan"]["lower_bound"], report["plan"]["feasible"]
        self.times = report["plan"]["ttft_ms"], report["plan"]["tpot_ms"]
        self.memory = [place["memory_bytes"] for place in report["plan"]["places"]]

    def hop(self, start: int, end: int, size: float) -> float:
        fixed, rate = self.message.get((start, end), (0.0, 0.0))
        return fixed + size * rate

    def held(self, part: int, pair: tuple, place: int) -> float:
        """Bytes that a part alone makes a place hold."""
        s = self.shape[part]
        own = sum(s[STAGES[k]]["weight_bytes"][place] for k in range(2) if pair[k] == place)
        return own + (s["weight_bytes"][place] + s["cache_bytes"][place] if place in pair else 0.0)

    def allowed(self, part: int, pair: tuple) -> bool:
        return all(self.shape[part][STAGES[k]]["allowed"] >> pair[k] & 1 for k in range(2))

    def last_hop(self, stage: int, place: int) -> float:
        return self.hop(place, 0, self.c["result_bytes"][stage]) if self.c["has_result"][stage] else 0.0

    def entry(self, part: int, stage: int, start: int, end: int) -> float:
        if part == 0 and not self.c["has_input"][stage]:
            return 0.0
        return self.hop(start, end, self.shape[part][STAGES[stage]]["read_bytes"])


def add_up(p: Problem, plan: list) -> tuple:
    """Objective, times by stage and bytes by place of a plan, from the definition."""
    ms, objective, before = [0.0, 0.0], 0.0, (0, 0)
    size, activation, moves = [0.0] * p.count, [0.0] * p.count, {}
    used = [[set(), set()] for _ in p.c["shared"]]
    for i, pair in enumerate(plan):
        for k, stage in enumerate(STAGES):
            figures = p.shape[i][stage]
            hop = p.entry(i, k, before[k], pair[k]) + (p.last_hop(k, pair[k]) if i + 1 == len(plan) else 0.0)
            ms[k] += figures["ms"][pair[k]] + hop
            objective += p.busy[k][pair[k]] * figures["ms"][pair[k]] + p.link[k] * hop
            activation[pair[k]] = max(activation[pair[k]], figures["activation_bytes"][pair[k]])
            for h in p.shared[i][k]:
                used[h][k].add(pair[k])
        for place in set(pair):
            size[place] += p.held(i, pair, place)
        if pair[0] != pair[1] and p.shape[i]["move_bytes"] > 0:
            moves[pair] = moves.get(pair, 0.0) + p.shape[i]["move_bytes"]
        before = pair
    for h, places in zip(p.c["shared"], used):
        for k, stage in enumerate(STAGES):
            for place in places[k]:
                ms[k] += h[f"{stage}_ms"][place]
                objective += p.busy[k][place] * h[f"{stage}_ms"][place]
        for place in places[0] | places[1]:
            size[place] += h["bytes"][place]
    for (start, end), moved in moves.items():
        ms[0] += p.hop(start, end, moved)
        objective += p.move * p.hop(start, end, moved)
    return objective, ms, [a + b for a, b in zip(size, activation)]


class Program:
    """Rows over HiGHS's variables; `cost` is the objective, scaled so that the plan's is 1."""

    def __init__(self, p: Problem, seconds: float):
        self.p, self.h = p, highspy.Highs()
        self.h.setOptionValue("output_flag", False)
        self.h.setOptionValue("threads", 1)
        self.h.setOptionValue("time_limit", seconds)
        self.scale = 1 / max(abs(p.stated), 1e-300)
        self.ms, self.bytes, self.x = [{}, {}], [{} for _ in range(p.count)], []
        self.pairs = [(a, b) for a in range(p.count) for b in range(p.count)]
        self._parts()
        self._flows()
        self._shared()
        self._moves()
        self._limits()

    def variable(self, cost: float, whole: bool = False) -> int:
        self.h.addCol(cost * self.scale, 0.0, 1.0, 0, [], [])
        index = self.h.getNumCol() - 1
        if whole:
            self.h.changeColIntegrality(index, highspy.HighsVarType.kInteger)
        return index

    def row(self, low: float, high: float, terms: dict) -> None:
        self.h.addRow(low, high, len(terms), list(terms), list(terms.values()))

    def _parts(self) -> None:
        p = self.p
        for i in range(len(p.shape)):
            chosen = {}
            for pair in self.pairs:
                if not p.allowed(i, pair):
                    continue
                busy = [p.shape[i][stage]["ms"][pair[k]] for k, stage in enumerate(STAGES)]
                chosen[pair] = self.variable(sum(p.busy[k][pair[k]] * busy[k] for k in range(2)), True)
                for k in range(2):
                    self.ms[k][chosen[pair]] = busy[k]
                for place in set(pair):
                    self.bytes[place][chosen[pair]] = p.held(i, pair, place)
            self.row(1, 1, {x: 1.0 for x in chosen.values()})
            self.x.append(chosen)

    def at(self, part: int, stage: int, place: int) -> dict:
        return {x: 1.0 for pair, x in self.x[part].items() if pair[stage] == place}

    def _flows(self) -> None:
        """A stage's way from place to place between two parts; messages are paid by it."""
        p, highs = self.p, highspy.kHighsInf
        for k in range(2):
            for i in range(len(p.shape) + 1):
                for a in range(p.count):
                    for b in range(p.count):
                        if a == b or (i == 0 and a) or (i == len(p.shape) and b):
                            continue
                        ms = p.last_hop(k, a) if i == len(p.shape) else p.entry(i, k, a, b)
                        if ms <= 0:
                            continue
                        y = self.variable(p.link[k] * ms)
                        self.ms[k][y] = ms
                        terms = {y: 1.0}
                        need = 0.0
                        for part, place in ((i - 1, a), (i, b)):
                            if 0 <= part < len(p.shape):
                                need += 1.0
                                for x in self.at(part, k, place):
                                    terms[x] = terms.get(x, 0.0) - 1.0
                        self.row(1.0 - need, highs, terms)

    def _shared(self) -> None:
        p, highs = self.p, highspy.kHighsInf
        for h, held in enumerate(p.c["shared"]):
            for place in range(p.count):
                z = self.variable(0.0)
                self.bytes[place][z] = held["bytes"][place]
                for k, stage in enumerate(STAGES):
                    own = held[f"{stage}_ms"][place]
                    w = self.variable(p.busy[k][place] * own)
                    self.ms[k][w] = own
                    for i in range(len(p.shape)):
                        if h in p.shared[i][k]:
                            self.row(0, highs, {w: 1.0} | {x: -1.0 for x in self.at(i, k, place)})
                    self.row(0, highs, {z: 1.0, w: -1.0})

    def _moves(self) -> None:
        p, highs = self.p, highspy.kHighsInf
        for pair in self.pairs:
            if pair[0] == pair[1]:
                continue
            fixed, rate = p.message.get(pair, (0.0, 0.0))
            first = self.variable(p.move * fixed)
            self.ms[0][first] = fixed
            for i, chosen in enumerate(self.x):
                moved = p.shape[i]["move_bytes"]
                if pair not in chosen or moved <= 0:
                    continue
                x = chosen[pair]
                self.ms[0][x] = self.ms[0].get(x, 0.0) + moved * rate
                self.h.changeColCost(x, self.h.getLp().col_cost_[x] + p.move * moved * rate * self.scale)
                self.row(0, highs, {first: 1.0, x: -1.0})

    def _limits(self) -> None:
        p, highs = self.p, highspy.kHighsInf
        for k in range(2):
            if p.limit_ms[k] > 0:
                self.row(-highs, 1.0, {x: v / p.limit_ms[k] for x, v in self.ms[k].items()})
        for place in range(p.count):
            limit = p.limit_bytes[place]
            if limit <= 0:
                continue
            sizes = sorted({s[stage]["activation_bytes"][place] for s in p.shape for stage in STAGES})
            steps = [self.variable(0.0) for _ in sizes]  # the largest activation is at least this
            terms = {x: v / limit for x, v in self.bytes[place].items()}
            for n, size in enumerate(sizes):
                terms[steps[n]] = (size - (sizes[n - 1] if n else 0.0)) / limit
                if n:
                    self.row(0, highs, {steps[n - 1]: 1.0, steps[n]: -1.0})
            for i, s in enumerate(p.shape):
                for k, stage in enumerate(STAGES):
                    n = sizes.index(s[stage]["activation_bytes"][place])
                    self.row(0, highs, {steps[n]: 1.0} | {x: -1.0 for x in self.at(i, k, place)})
            self.row(-highs, 1.0, terms)

    def solve(self) -> tuple:
        """HiGHS's plan, None without one, and its bound."""
        self.h.run()
        info, status = self.h.getInfo(), self.h.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None, float("inf")
        if info.primal_solution_status != 2:
            return None, info.mip_dual_bound / self.scale
        value = self.h.getSolution().col_value
        plan = [max(chosen, key=lambda pair: value[chosen[pair]]) for chosen in self.x]
        return plan, info.mip_dual_bound / self.scale


def near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-7 * max(abs(a), abs(b)) + 1e-12


def judge(path: str, seconds: float, worst: float) -> list:
    with open(path, encoding="utf-8") as file:
        p = Problem(json.load(file))
    faults = []
    if all(place >= 0 for pair in p.plan for place in pair):
        objective, ms, size = add_up(p, p.plan)
        if not near(objective, p.stated) or not near(ms[0], p.times[0]) or not near(ms[1], p.times[1]):
            faults.append(f"the plan adds up to {objective}, {ms} ms; stated {p.stated}, {p.times} ms")
        if not all(near(a, b) for a, b in zip(size, p.memory)):
            faults.append(f"the places hold {size}, stated {p.memory}")
        if not all(p.allowed(i, pair) for i, pair in enumerate(p.plan)):
            faults.append("a part is where its pins do not let it be")
    begin = time.time()
    plan, bound = Program(p, seconds).solve()
    took, found = time.time() - begin, add_up(p, plan)[0] if plan else None
    if plan and not p.feasible:
        faults.append(f"HiGHS has a plan of {found}, the report none")
    if plan and p.feasible and p.lower is not None and found < p.lower * (1 - 1e-6):
        faults.append(f"HiGHS's plan costs {found}, less than the bound {p.lower}")
    if plan and p.feasible and p.stated > found * worst:
        faults.append(f"the plan costs {p.stated / found} times HiGHS's")
    text = f"{found:.6g}, ratio {p.stated / found:.5f}" if plan and found else "no plan" if not plan else "0"
    print(f"{path}: plan {p.stated:.6g}{'' if p.feasible else ' (infeasible)'}, HiGHS {text}, at least {bound:.6g}, "
          f"the report {p.lower}, {took:.1f} s", flush=True)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--worst", type=float, default=float("inf"))
    args = parser.parse_args()
    status = 0
    for path in args.reports:
        for fault in judge(path, args.seconds, args.worst):
            print(f"{path}: {fault}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
