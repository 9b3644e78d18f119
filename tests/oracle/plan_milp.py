"""An oracle for the planner: a plan's problem as a mixed-integer program, solved by HiGHS.

    python tests/oracle/plan_milp.py REPORT.json ... [--seconds 60] [--worst RATIO] [--gap GAP] [--fastest]

Reads nothing but the certificate in a report: units, values, holdings, link, limits and objective. It shares no code with the
planner and needs `highspy` (requirements.txt). For each report it prints a line: the plan's objective, the best objective
that HiGHS found, the ratio of the two, the bound that HiGHS proved, the gap that the report states, and HiGHS's time.

First it adds up the report's own plan and compares it with the report's figures. HiGHS's plan is added up in the same way, so
that a mistake in the program cannot pass for a better plan. Exit status 1: a sum differs, the report's bound is above HiGHS's
plan, HiGHS proved a bound above the report's plan, the plan is more than --worst times HiGHS's, or it costs more than the
tolerance above the cheapest plan of the report. With --fastest HiGHS searches for the least latency within that tolerance, and
the numbers of the line are latencies in ms.

The program. Each unit runs on the device (0) or in the cloud (1); the users of a KV cache in one stage are on one side. A
value crosses once if its maker and a reader are on different sides. A stage runs in turns: a unit's turn is the first turn of
its side that is not before the turns of what it reads; the device has the even turns. Each turn that sends anything costs one
message. Where the link `streams`, decode costs no messages if all of it and prefill's result are in the cloud, only the time
by which a token takes longer over the link than in the cloud. A side holds what any unit there uses. KV caches that prefill
and decode hold on different sides move at the end of prefill, in one message per direction.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, field

import highspy
import numpy as np

DEVICE, CLOUD = 0, 1
STAGES = ("prefill", "decode")
INFINITY = highspy.kHighsInf


class Problem:
    """The certificate of a report; `sides` are those of the report's plan."""

    def __init__(self, report: dict):
        c = report["certificate"]
        self.limit_ms, self.limit_bytes = c["limits"]["ms"], c["limits"]["bytes"]
        self.busy = [c["objective"][f"{stage}_per_ms"] for stage in STAGES]
        self.link_price, self.move_price = c["objective"]["link_per_ms"], c["objective"]["move_per_ms"]
        self.message_ms, self.ms_per_byte = c["link"]["message_ms"], c["link"]["ms_per_byte"]
        self.streams = c["link"].get("streams", False)
        self.holdings = c["holdings"]
        self.values = [c[stage]["values"] for stage in STAGES]
        self.units = [c[stage]["units"] for stage in STAGES]
        self.sides = [[unit["side"] for unit in units] for units in self.units]
        self.stated, self.lower = c["value"], report["plan"].get("lower_bound", c["bound"])
        self.steps = max(report["workload"]["osl"] - 1, 0)
        self.tolerance, self.cheapest = report.get("tolerance", 0), None
        if report.get("cheapest"):
            self.cheapest = [[int(side) for side in c["cheapest"][stage]] for stage in STAGES]
        self.makers = [{value: i for i, unit in enumerate(units) for value in unit["out"]} for units in self.units]
        self.users = [[[] for _ in self.holdings] for _ in STAGES]
        for stage, units in enumerate(self.units):
            for i, unit in enumerate(units):
                for held in unit["hold"]:
                    self.users[stage][held].append(i)

    def held_ms(self, held: int, stage: int, side: int) -> float:
        return self.holdings[held].get(f"{STAGES[stage]}_ms", (0, 0))[side]


@dataclass
class Totals:
    ms: list = field(default_factory=lambda: [0.0, 0.0])
    bytes: list = field(default_factory=lambda: [0.0, 0.0])
    objective: float = 0.0
    broken: str = ""

    def latency(self, p: Problem) -> float:
        return self.ms[0] + p.steps * self.ms[1]


def link_ms(p: Problem, stage: int, sides: list) -> float:
    """The time of a stage's messages."""
    turns, crossed, sending, total = [], set(), set(), 0.0
    for i, unit in enumerate(p.units[stage]):
        turn = max((turns[p.makers[stage][v]] for v in unit["in"] if v in p.makers[stage]), default=0)
        turns.append(turn + (turn % 2 != sides[i]))
        for value in unit["in"]:
            maker = p.makers[stage].get(value)
            start = DEVICE if maker is None else sides[maker]
            if start == sides[i] or value in crossed:
                continue
            crossed.add(value)
            sending.add(0 if maker is None else turns[maker])
            total += p.values[stage][value] * p.ms_per_byte[start]
        if "result_bytes" in unit and sides[i] == CLOUD:
            sending.add(turns[i])
            total += unit["result_bytes"] * p.ms_per_byte[CLOUD]
    return total + len(sending) * p.message_ms


def streaming(p: Problem) -> list:
    """The units, as (stage, index), that are in the cloud where decode streams."""
    if not p.streams:
        return []
    first = [(0, i) for i, unit in enumerate(p.units[0]) if "result_bytes" in unit]
    return first + [(1, i) for i in range(len(p.units[1]))]


def stall_ms(p: Problem) -> float:
    """The time that each token of a decode that streams waits for a link that is slower than the cloud."""
    busy = sum(unit["ms"][CLOUD] for unit in p.units[1])
    busy += sum(p.held_ms(held, 1, CLOUD) for held in range(len(p.holdings)) if p.users[1][held])
    token = sum(unit.get("result_bytes", 0) for unit in p.units[1]) * p.ms_per_byte[CLOUD]
    return token - busy if token > 1.001 * busy else 0.0


def add_up(p: Problem, sides: list) -> Totals:
    """The cost of a placement, from the definition."""
    t, moved = Totals(), [0.0, 0.0]
    for stage, units in enumerate(p.units):
        busy = [0.0, 0.0]
        for i, unit in enumerate(units):
            busy[sides[stage][i]] += unit["ms"][sides[stage][i]]
            if unit.get("pin", sides[stage][i]) != sides[stage][i]:
                t.broken = f"{unit['name']} is not where it is pinned"
        for held in range(len(p.holdings)):
            for side in {sides[stage][i] for i in p.users[stage][held]}:
                busy[side] += p.held_ms(held, stage, side)
        streams = stage == 1 and p.streams and all(sides[s][i] == CLOUD for s, i in streaming(p))
        link = stall_ms(p) if streams else link_ms(p, stage, sides[stage])
        t.ms[stage] = sum(busy) + link
        t.objective += busy[0] * p.busy[stage][0] + busy[1] * p.busy[stage][1] + link * p.link_price[stage]
    for held, h in enumerate(p.holdings):
        on = [{sides[stage][i] for i in p.users[stage][held]} for stage in range(2)]
        for side in on[0] | on[1]:
            t.bytes[side] += h["bytes"][side]
        if not h.get("cache"):
            continue
        if len(on[0]) > 1 or len(on[1]) > 1:
            t.broken = "a KV cache is on both sides in one stage"
        if on[0] and on[1] and on[0] != on[1]:
            moved[min(on[0])] += h["move_bytes"]
    moves = sum(p.message_ms + moved[side] * p.ms_per_byte[side] for side in range(2) if moved[side] > 0)
    t.ms[0] += moves
    t.objective += p.move_price * moves
    for side in range(2):
        t.bytes[side] += 2 * max((u["activation"][side] for stage, units in enumerate(p.units)
                                  for i, u in enumerate(units) if sides[stage][i] == side), default=0)
    for i in range(2):
        if p.limit_ms[i] > 0 and t.ms[i] > p.limit_ms[i] * (1 + 1e-9):
            t.broken = f"{('TTFT', 'TPOT')[i]} is {t.ms[i]} ms, the limit {p.limit_ms[i]} ms"
        if p.limit_bytes[i] > 0 and t.bytes[i] > p.limit_bytes[i] * (1 + 1e-9):
            t.broken = f"the {('device', 'cloud')[i]} holds {t.bytes[i]:.0f} bytes, the limit is {p.limit_bytes[i]:.0f}"
    return t


class Program:
    """Variables and rows; an expression is a dict from variable to factor, None: the constant."""

    def __init__(self):
        self.cost, self.low, self.high, self.whole = [], [], [], []
        self.row_low, self.row_high, self.starts, self.index, self.factor = [], [], [], [], []

    def variable(self, low=0.0, high=1.0, whole=False) -> int:
        self.cost.append(0.0)
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def at_least(self, expression: dict, bound: float) -> None:
        self._row(expression, bound - expression.get(None, 0.0), INFINITY)

    def at_most(self, expression: dict, bound: float) -> None:
        self._row(expression, -INFINITY, bound - expression.get(None, 0.0))

    def _row(self, expression: dict, low: float, high: float) -> None:
        self.row_low.append(low)
        self.row_high.append(high)
        self.starts.append(len(self.index))
        for variable, factor in expression.items():
            if variable is not None and factor != 0:
                self.index.append(variable)
                self.factor.append(factor)

    def build(self) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.row_low)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = (np.array(x, float) for x in (self.cost, self.low, self.high))
        lp.row_lower_, lp.row_upper_ = np.array(self.row_low, float), np.array(self.row_high, float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(self.starts + [len(self.index)])
        lp.a_matrix_.index_, lp.a_matrix_.value_ = np.array(self.index), np.array(self.factor, float)
        lp.integrality_ = [highspy.HighsVarType.kInteger if w else highspy.HighsVarType.kContinuous for w in self.whole]
        return lp


def add(total: dict, factor: float, expression: dict) -> None:
    """Adds factor times expression to an expression."""
    for variable, value in expression.items():
        total[variable] = total.get(variable, 0.0) + factor * value


def less(a: dict, factor: float, b: dict) -> dict:
    """a - factor b."""
    result = dict(a)
    add(result, -factor, b)
    return result


class Model:
    """The program of a problem: the least objective, or the least latency of plans with an objective of at most `most`."""

    def __init__(self, p: Problem, most: float | None = None):
        self.p, self.m = p, Program()
        self.cloud = [[None] * len(units) for units in p.units]  # [stage][unit] variable: 1 in the cloud
        self.ms = [{None: 0.0}, {None: 0.0}]  # by stage
        self.bytes = [{None: 0.0}, {None: 0.0}]  # by side
        self.objective = {None: 0.0}
        self._sides()
        for stage in range(2):
            self._units(stage)
            self._messages(stage)
        self._streams()
        self._holdings()
        self._activations()
        for i in range(2):
            if p.limit_ms[i] > 0:
                self.m.at_most({k: v / p.limit_ms[i] for k, v in self.ms[i].items()}, 1)
            if p.limit_bytes[i] > 0:
                self.m.at_most({k: v / p.limit_bytes[i] for k, v in self.bytes[i].items()}, 1)
        if most is not None:
            scale = 1 / max(most, 1e-300)
            self.m.at_most({k: v * scale for k, v in self.objective.items()}, most * scale)
            self.objective = {}
            add(self.objective, 1, self.ms[0])
            add(self.objective, p.steps, self.ms[1])
        own = p.stated if most is None else add_up(p, p.sides).latency(p)
        self.scale = 1 / max(abs(own), 1e-300)  # the plan's own objective is 1
        for variable, factor in self.objective.items():
            if variable is not None:
                self.m.cost[variable] = factor * self.scale

    def _on(self, stage: int, unit: int, side: int) -> dict:
        x = self.cloud[stage][unit]
        return {x: 1.0} if side == CLOUD else {None: 1.0, x: -1.0}

    def _sides(self) -> None:
        for stage, units in enumerate(self.p.units):
            for held, h in enumerate(self.p.holdings):
                users = self.p.users[stage][held]
                if not h.get("cache") or not users:
                    continue
                x = self.m.variable(whole=True)
                for i in users:
                    if self.cloud[stage][i] is not None:  # it uses another cache as well
                        self.m.at_least({x: 1.0, self.cloud[stage][i]: -1.0}, 0)
                        self.m.at_most({x: 1.0, self.cloud[stage][i]: -1.0}, 0)
                    else:
                        self.cloud[stage][i] = x
            for i, unit in enumerate(units):
                if self.cloud[stage][i] is None:
                    self.cloud[stage][i] = self.m.variable(whole=True)
                if "pin" in unit:
                    self.m.low[self.cloud[stage][i]] = self.m.high[self.cloud[stage][i]] = float(unit["pin"])

    def _add_busy(self, stage: int, side: int, ms: float, on: dict) -> None:
        add(self.ms[stage], ms, on)
        add(self.objective, ms * self.p.busy[stage][side], on)

    def _add_link(self, stage: int, ms: float, on: dict, price: float) -> None:
        add(self.ms[stage], ms, on)
        add(self.objective, ms * price, on)

    def _units(self, stage: int) -> None:
        for i, unit in enumerate(self.p.units[stage]):
            for side in range(2):
                self._add_busy(stage, side, unit["ms"][side], self._on(stage, i, side))

    def _messages(self, stage: int) -> None:
        """Bytes that cross, and the number of turns that send. Turns are numbered without gaps; each sends, except
        that turn 0 may have nothing to send when a unit reads nothing."""
        p, m, price = self.p, self.m, self.p.link_price[stage]
        turns, last = [], m.variable(high=INFINITY)
        starts = any(not unit["in"] for unit in p.units[stage])
        first = m.variable() if starts else None  # 1: turn 0 sends
        crossing = {}
        for i, unit in enumerate(p.units[stage]):
            x, turn = self.cloud[stage][i], m.variable(high=INFINITY)
            turns.append(turn)
            m.at_least({turn: 1.0, x: -1.0}, 0)
            m.at_least({last: 1.0, turn: -1.0}, 0)
            for value in unit["in"]:
                maker = p.makers[stage].get(value)
                if maker is None:
                    if (value, 0) not in crossing:
                        crossing[value, 0] = m.variable()
                    m.at_least({crossing[value, 0]: 1.0, x: -1.0}, 0)
                    continue
                before, y = turns[maker], self.cloud[stage][maker]
                if y == x:
                    m.at_least({turn: 1.0, before: -1.0}, 0)
                    continue
                m.at_least({turn: 1.0, before: -1.0, x: -1.0, y: 1.0}, 0)
                m.at_least({turn: 1.0, before: -1.0, x: 1.0, y: -1.0}, 0)
                for side, sign in ((DEVICE, 1.0), (CLOUD, -1.0)):
                    if (value, side) not in crossing:
                        crossing[value, side] = m.variable()
                    m.at_least({crossing[value, side]: 1.0, x: -sign, y: sign}, 0)
            if "result_bytes" in unit:
                m.at_least({last: 1.0, turn: -1.0, x: -1.0}, 0)
                self._add_link(stage, unit["result_bytes"] * p.ms_per_byte[CLOUD], {x: 1.0}, price)
        for (value, side), variable in crossing.items():
            self._add_link(stage, p.values[stage][value] * p.ms_per_byte[side], {variable: 1.0}, price)
            if starts and p.makers[stage].get(value) is None:
                m.at_least({first: 1.0, variable: -1.0}, 0)
        count = {last: 1.0}
        if starts:  # at least this many: turn 0 also sends what units of turn 0 made
            sent = m.variable(high=INFINITY)
            m.at_least({sent: 1.0, last: -1.0, first: -1.0, None: 1.0}, 0)
            count = {sent: 1.0}
        self._add_link(stage, p.message_ms, count, price)

    def _streams(self) -> None:
        """1: decode streams, and pays none of its messages, only the wait for a slow link."""
        p = self.p
        if not p.streams:
            return
        does = self.m.variable(whole=True)
        for stage, i in streaming(p):
            self.m.at_least({self.cloud[stage][i]: 1.0, does: -1.0}, 0)
        self._add_link(1, stall_ms(p) - link_ms(p, 1, [CLOUD] * len(p.units[1])), {does: 1.0}, p.link_price[1])

    def _holdings(self) -> None:
        p, m = self.p, self.m
        moving = [None, None]
        for held, h in enumerate(p.holdings):
            users = [p.users[stage][held] for stage in range(2)]
            timed = any(p.held_ms(held, stage, side) > 0 for stage in range(2) for side in range(2))
            sized = any(p.limit_bytes[side] > 0 and h["bytes"][side] > 0 for side in range(2))
            for side in range(2) if timed or sized else ():
                both = m.variable()
                for stage in range(2):
                    on = m.variable()
                    for i in {self.cloud[stage][i]: i for i in users[stage]}.values():
                        m.at_least(less({on: 1.0}, 1, self._on(stage, i, side)), 0)
                    m.at_least({both: 1.0, on: -1.0}, 0)
                    if p.held_ms(held, stage, side) > 0:
                        self._add_busy(stage, side, p.held_ms(held, stage, side), {on: 1.0})
                if sized:
                    add(self.bytes[side], h["bytes"][side], {both: 1.0})
            if not h.get("cache") or not users[0] or not users[1] or not h.get("move_bytes"):
                continue
            first, then = self.cloud[0][users[0][0]], self.cloud[1][users[1][0]]
            for side, sign in ((DEVICE, 1.0), (CLOUD, -1.0)):
                moved = m.variable()
                m.at_least({moved: 1.0, then: -sign, first: sign}, 0)
                self._add_link(0, h["move_bytes"] * p.ms_per_byte[side], {moved: 1.0}, p.move_price)
                if moving[side] is None:
                    moving[side] = m.variable()
                m.at_least({moving[side]: 1.0, moved: -1.0}, 0)
        for side in range(2):
            if moving[side] is not None:
                self._add_link(0, p.message_ms, {moving[side]: 1.0}, p.move_price)

    def _activations(self) -> None:
        for side in range(2):
            if not self.p.limit_bytes[side] > 0:
                continue
            unit = max(1.0, max(u["activation"][side] for units in self.p.units for u in units))
            most = self.m.variable(high=1.0)  # in units of the greatest
            for stage, units in enumerate(self.p.units):
                for i, u in enumerate(units):
                    if u["activation"][side] > 0:
                        self.m.at_least(less({most: 1.0}, u["activation"][side] / unit, self._on(stage, i, side)), 0)
            add(self.bytes[side], 2 * unit, {most: 1.0})

    def solve(self, seconds: float, gap: float, threads: int):
        """The sides of HiGHS's plan (None without one), its bound, and whether it is complete."""
        h = highspy.Highs()
        for name, value in (("output_flag", False), ("time_limit", seconds), ("mip_rel_gap", gap), ("threads", threads),
                            ("primal_feasibility_tolerance", 1e-9), ("mip_feasibility_tolerance", 1e-9)):
            h.setOptionValue(name, value)
        h.passModel(self.m.build())
        start = {self.cloud[s][i]: side for s in range(2) for i, side in enumerate(self.p.sides[s])}
        h.setSolution(len(start), np.array(list(start), np.int32), np.array(list(start.values()), float))
        h.run()
        info, constant = h.getInfo(), self.objective.get(None, 0.0)
        bound = info.mip_dual_bound / self.scale + constant
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None, bound, False
        x = h.getSolution().col_value
        sides = [[int(x[self.cloud[s][i]] > 0.5) for i in range(len(self.p.units[s]))] for s in range(2)]
        return sides, bound, h.getModelStatus() == highspy.HighsModelStatus.kOptimal


def near(a: float, b: float, tolerance: float = 1e-8) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b)) + 1e-15


def sum_faults(p: Problem, own: Totals, report: dict) -> list[str]:
    """The report's figures beside the sums of its plan, and the plan beside the cheapest one."""
    faults = [own.broken] if own.broken else []
    wanted = {"value": (own.objective, p.stated), "ttft_ms": (own.ms[0], report["plan"]["ttft_ms"]),
              "tpot_ms": (own.ms[1], report["plan"]["tpot_ms"])}
    faults += [f"{name} comes to {a!r}, the report says {b!r}" for name, (a, b) in wanted.items() if not near(a, b)]
    if p.cheapest:
        least = add_up(p, p.cheapest)
        if least.broken:
            faults.append(f"the cheapest plan: {least.broken}")
        if own.objective > (1 + p.tolerance) * least.objective * (1 + 1e-9):
            faults.append(f"the plan comes to {own.objective!r}, the cheapest to {least.objective!r}")
        if own.latency(p) > least.latency(p) * (1 + 1e-9):
            faults.append("the plan is slower than the cheapest")
    return faults


def judge(path: str, args: argparse.Namespace) -> bool:
    """Prints a line about one report; False when the report and HiGHS contradict each other."""
    with open(path) as file:
        report = json.load(file)
    if not report.get("feasible"):
        print(f"{path}: not feasible, nothing to judge")
        return True
    p = Problem(report)
    own, fastest = add_up(p, p.sides), getattr(args, "fastest", False)
    faults = sum_faults(p, own, report)
    most = (1 + p.tolerance) * add_up(p, p.cheapest or p.sides).objective if fastest else None
    of = (lambda totals: totals.latency(p)) if fastest else (lambda totals: totals.objective)
    begin = time.monotonic()
    sides, bound, done = Model(p, most).solve(args.seconds, args.mip_gap, args.threads)
    seconds = time.monotonic() - begin
    mine = best = of(own)
    if sides:
        found = add_up(p, sides)
        if not found.broken and (most is None or found.objective <= most * (1 + 1e-9)):
            best = min(best, of(found))
    ratio = mine / best if best else 1.0
    if not fastest and p.lower > best * (1 + 1e-8):
        faults.append(f"the report's lower bound {p.lower!r} is above HiGHS's plan {best!r}")
    if bound > mine * (1 + 1e-6):
        faults.append(f"HiGHS proves {bound!r}, above the report's plan {mine!r}")
    if ratio > args.worst:
        faults.append(f"the plan is {ratio:.4f} times HiGHS's, at most {args.worst} is wanted")
    gap = 1 - p.lower / own.objective if own.objective else 0.0
    if gap > args.gap:
        faults.append(f"the report states a gap of {gap:.4f}, at most {args.gap} is wanted")
    stated = "" if fastest else f"report's bound {p.lower:.6g} gap {100 * gap:.2f} % "
    print(f"{path}: plan {mine:.6g} HiGHS {best:.6g}{' (optimal)' if done else ''} ratio {ratio:.4f} "
          f"HiGHS's bound {bound:.6g} {stated}{seconds:.1f} s", flush=True)
    for fault in faults:
        print(f"{path}: {fault}", file=sys.stderr)
    return not faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--seconds", type=float, default=60, help="that HiGHS may take for a report (60)")
    parser.add_argument("--mip-gap", type=float, default=1e-4, help="at which HiGHS is content (1e-4)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worst", type=float, default=float("inf"), help="fail when a plan costs more than this many times HiGHS's")
    parser.add_argument("--gap", type=float, default=float("inf"), help="fail when a report states a greater gap")
    parser.add_argument("--fastest", action="store_true", help="judge the latency within the tolerance instead of the objective")
    args = parser.parse_args()
    sys.exit(0 if all([judge(path, args) for path in args.reports]) else 1)


if __name__ == "__main__":
    main()
