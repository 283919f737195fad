"""`steptime scaling`: the speed-up of more devices, the cost of their exchange, predictions."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.exit_codes import exit_if_failed
from steptime.cli.options import Again, Json, PlanName, Preset, Settings, Workload
from steptime.cli.request import collect_settings, read_plan, store_folder, warn_of_problems
from steptime.core.errors import SteptimeError, unknown

if TYPE_CHECKING:
    from steptime.analysis.scaling.report import Target
    from steptime.analysis.scaling.series import Series
    from steptime.core.case import Case
    from steptime.core.record import Record
    from steptime.plan.expand import Plan

SHIPPED_PLAN = "scaling"
KINDS = {"weak": ("weak",), "strong": ("strong",), "both": ("weak", "strong")}
BYTES_PER_SECOND = {"kbit": 125.0, "mbit": 125e3, "gbit": 125e6}
# The smallest series; every machine with two CPUs can run it.
DEFAULT_COUNTS = (1, 2)
COUNT = re.compile(r"[1-9][0-9]{0,5}")
# A number of devices, then optionally @ and a bandwidth with its unit.
PREDICTION = re.compile(r"([1-9][0-9]{0,8})(?:@([0-9]*\.?[0-9]+)(kbit|mbit|gbit))?")
# Settings that a series varies itself, and what to do instead.
SERIES_SETTINGS = {
    "exchange": "Leave it out, or name one that exchanges.",
    "devices": "Use --devices 1,2.",
}
NO_SERIES = (
    "Nothing here is a series. A series is the same case on two or more numbers of devices with "
    "exchange=allreduce and the same batch per device (weak) or in total (strong)."
)


def scaling_command(
    plan: PlanName = "",
    workload: Workload = "",
    devices: Annotated[
        str, typer.Option(metavar="N,N,…", help="Numbers of devices: 1,2,4.", show_default=False)
    ] = "",
    kind: Annotated[str, typer.Option(metavar="NAME", help="weak, strong or both.")] = "both",
    preset: Preset = "",
    set_: Settings = None,
    predict: Annotated[
        str,
        typer.Option(
            metavar="N,N,…", help="Numbers of devices: 8,64,64@10gbit.", show_default=False
        ),
    ] = "",
    again: Again = False,
    json: Json = False,
) -> None:
    """Measure how speed grows with the number of devices.

    Measures each number of devices with the exchange of gradients and without it. Without a plan
    and a workload it runs the shipped plan `scaling`. Results that exist are not measured again."""
    from steptime.analysis.scaling.series import find_series

    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    predictions = [_parse_prediction(text) for text in predict.split(",")] if predict else []
    settings = collect_settings(set_, {"workload": workload})
    if not plan and "workload" not in settings:
        plan = SHIPPED_PLAN
    expanded, cases = _series_cases(plan, settings, _parse_counts(devices), preset, KINDS[kind])
    records, fresh = _measure(expanded, cases, again=again)
    all_series = [series for series in find_series(records) if series.kind in KINDS[kind]]
    _show(records, all_series, predictions, json=json)
    if not json:
        from steptime.cli.render.results import show_stored

        show_stored(records, store_folder(), fresh=fresh)
    exit_if_failed(sum(record.status != "ok" for record in records), len(records))


def _parse_counts(text: str) -> list[int]:
    if not text:
        return []
    numbers = text.split(",")
    if not all(COUNT.fullmatch(number) for number in numbers):
        raise SteptimeError(f"--devices takes whole numbers such as 1,2,4; found {text!r}.")
    counts = sorted({int(number) for number in numbers})
    if len(counts) == 1:
        example = f"--devices 1,{max(2, counts[0])}"
        raise SteptimeError(
            f"A series needs two numbers of devices or more, found {text!r}: try {example}."
        )
    return counts


def _parse_prediction(text: str) -> Target:
    """A number of devices, and the bandwidth in bytes per second if one follows after @."""
    from steptime.analysis.scaling.report import Target

    match = PREDICTION.fullmatch(text.strip())
    if not match:
        raise SteptimeError(
            "--predict takes numbers of devices, each with an optional bandwidth: "
            f"8,64,64@10gbit; found {text!r}."
        )
    if not match[2]:
        return Target(int(match[1]))
    rate = float(match[2]) * BYTES_PER_SECOND[match[3]]
    if rate == 0:
        raise SteptimeError(f"Nothing can be exchanged at {text!r}.")
    return Target(int(match[1]), rate)


def _series_cases(
    name: str, settings: dict[str, Any], counts: list[int], preset: str, kinds: Sequence[str]
) -> tuple[Plan, list[Case]]:
    """The cases of a plan that has series; else a series for each case of the plan."""
    from steptime.analysis.scaling.series import plan_cases, select_cases, share_threads

    plan = read_plan(name, settings, preset)
    # The plan has series of its own; --devices replaces its numbers.
    if any(case.exchange != "none" for case in plan.cases):
        if counts:
            plan = read_plan(name, settings | {"devices": counts}, preset)
        return plan, select_cases(plan.cases, kinds)
    for setting, advice in SERIES_SETTINGS.items():
        if setting in settings:
            value = f"{setting}={settings[setting]}"
            raise SteptimeError(f"A series varies {setting} itself, found {value}. {advice}")
    counts = counts or list(DEFAULT_COUNTS)
    cpus = len(os.sched_getaffinity(0))
    cases: list[Case] = []
    for case in plan.cases:
        cases += plan_cases(share_threads(case, counts, cpus), counts, kinds)
    return plan, cases


def _measure(plan: Plan, cases: list[Case], *, again: bool) -> tuple[list[Record], bool]:
    """The records, and whether any of them is new."""
    from steptime.cli.render.watch import SessionWatch
    from steptime.run import session
    from steptime.store.folder import FolderStore

    if not cases:
        raise SteptimeError(NO_SERIES)
    store = FolderStore(store_folder())
    with SessionWatch() as watch:
        records = session.run(cases, plan.protocol, store, again=again, watch=watch)
    warn_of_problems(store)
    return records, bool(watch.finished_processes)


def _show(
    records: Sequence[Record],
    all_series: Sequence[Series],
    predictions: list[Target],
    *,
    json: bool,
) -> None:
    from steptime.analysis.scaling.report import report
    from steptime.cli.render import scaling_table

    failed = [record for record in records if not record.measurements]
    # With failures, show those: they are the reason.
    if not all_series and not failed:
        raise SteptimeError(NO_SERIES)
    reports = [report(series, predictions) for series in all_series]
    if not json:
        scaling_table.show(reports)
        for record in failed:
            reason = record.failures[-1].reason
            output.echo(f"failed: {record.case.label}: {record.status}. {reason}")
        return
    failures = []
    for record in failed:
        entry = {"case": record.case.to_dict(), "failure": vars(record.failures[-1])}
        failures.append(entry)
    output.print_json({"session": records[0].session, "series": reports, "failed": failures})
