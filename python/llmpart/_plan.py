"""Plans and sweeps: the planner's reports as tables."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._command import Error, Value, run, words

if TYPE_CHECKING:
    import pandas


class Table(list[dict[str, Any]]):
    """A list of rows, each a dict from column to value."""

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame.from_records(list(self))


class Plan:
    """Where each operator of a model runs, with the predicted times and cost."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        """The whole report, as `llmpart compile --report=FILE.json` writes it."""

    @property
    def feasible(self) -> bool:
        """Whether the plan meets the limits."""
        return bool(self.report["feasible"])

    @property
    def figures(self) -> Table:
        """The plan's figures in one row: ttft_ms, tpot_ms, cost_per_mtok_usd, bytes, memory."""
        return Table([{"scheduler": self.report["scheduler"], **(self.report["plan"] or {})}])

    @property
    def baselines(self) -> Table:
        """The same figures of other plans, such as device_only and cloud_only: a row for each."""
        return Table({"scheduler": name, **figures} for name, figures in self.report["baselines"].items() if figures)

    @property
    def operators(self) -> Table:
        """A row for each operator and stage: its side, FLOPs, bytes, and time on either machine."""
        return Table(self.report["operators"])

    def __repr__(self) -> str:
        figures = self.figures[0]
        return f"<llmpart.Plan: TTFT {figures.get('ttft_ms')} ms, TPOT {figures.get('tpot_ms')} ms>"


class Infeasible(Error):
    """No plan meets the limits. `plan` is the nearest one, and plan.report["fixes"] lists what would help."""

    def __init__(self, error: Error, plan: Plan) -> None:
        super().__init__(str(error), error.status)
        self.plan = plan


def run_compile(model: str | os.PathLike[str], *arguments: str | os.PathLike[str]) -> Plan:
    """Run `llmpart compile` and return the plan in its report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.json")
        try:
            run("compile", f"--report={file}", *arguments, "--", model)
        except Error as error:
            if error.status == 3 and file.exists():
                raise Infeasible(error, Plan(json.loads(file.read_bytes()))) from None
            raise
        return Plan(json.loads(file.read_bytes()))


def plan(
    model: str | os.PathLike[str],
    *,
    device: str | os.PathLike[str],
    cloud: str | os.PathLike[str] | None = None,
    link: str | os.PathLike[str] | None = None,
    ttft: str | float | None = None,
    tpot: str | float | None = None,
    **options: Value | list[str],
) -> Plan:
    """Plan a model without writing code; no weights are read.

    Limits are texts such as "400ms", or numbers of milliseconds. The other options are those of `llmpart compile` with
    underscores: `device_memory="4GiB"`, `pin=["layer.0.*=device"]`. Raises Infeasible when no plan meets the limits.
    """
    machines: dict[str, Value] = {"device": device, "cloud": cloud, "link": link, "ttft": ttft, "tpot": tpot}
    return run_compile(model, "--plan-only", *words({**machines, **options}))


class Fleet:
    """The machines that serve a load within limits at percentiles, and what runs where."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        """The whole report, as `llmpart fleet -o json` writes it."""

    @property
    def figures(self) -> Table:
        """USD a month, its lower bound and gap, machines, and the share of requests without a cloud: in one row."""
        return Table([self.report["fleet"]])

    @property
    def pools(self) -> Table:
        """A row for each pool: machine, count, sessions, utilisation, USD a month, what binds."""
        return Table(self.report["pools"])

    @property
    def classes(self) -> Table:
        """A row for each class of users: where it runs, its times and limits in columns such as ttft_p95_ms."""
        return Table(
            {
                **{name: value for name, value in row.items() if name not in ("times", "limits", "user")},
                **{
                    f"{prefix}{figure.removesuffix('_ms')}_{quantile}_ms": value
                    for prefix, key in (("", "times"), ("limit_", "limits"))
                    for figure, quantiles in row[key].items()
                    for quantile, value in quantiles.items()
                },
            }
            for row in self.report["classes"]
        )

    def __repr__(self) -> str:
        figures = self.figures[0]
        return f"<llmpart.Fleet: {figures['machines']} machines, USD {figures['usd_per_month']} a month>"


def run_spec(command: str, spec: str | os.PathLike[str] | Mapping[str, Any], *arguments: str) -> dict[str, Any]:
    """Run a command on a YAML file, or on a mapping of the same form as one in the current folder; its JSON."""
    if not isinstance(spec, Mapping):
        return dict(json.loads(run(command, *arguments, "-ojson", "--", spec)))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=".", encoding="utf-8") as file:
        json.dump(spec, file)  # JSON is YAML as well
        file.flush()
        return dict(json.loads(run(command, *arguments, "-ojson", "--", file.name)))


def fleet(spec: str | os.PathLike[str] | Mapping[str, Any]) -> Fleet:
    """Plan machines and money for a load: `llmpart fleet`.

    The spec is a YAML file (docs/guide/capacity.md), or a mapping of the same form, whose file names are relative to
    the current folder.
    """
    return Fleet(run_spec("fleet", spec))


def sweep(spec: str | os.PathLike[str] | Mapping[str, Any], *, threads: int | None = None) -> Table:
    """Plan a model at every combination that a spec lists; a row for each.

    The spec is a YAML file (docs/guide/capacity.md), or a mapping of the same form, whose file names are relative to
    the current folder. A sweep of a file that was interrupted continues where it stopped.
    """
    settings: dict[str, Value] = {"threads": threads}
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(spec, Mapping):
            settings["journal"] = Path(folder, "journal")
        return Table(run_spec("sweep", spec, *words(settings))["rows"])
