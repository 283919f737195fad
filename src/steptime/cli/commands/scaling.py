"""`steptime scaling`: what more devices bring, what their exchange costs, and what still more of them would bring."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.commands.run import ALL_FAILED, SOME_FAILED
from steptime.cli.render.format import settings
from steptime.cli.request import read_plan, store_folder, warn_of_problems
from steptime.core.errors import SteptimeError, unknown

if TYPE_CHECKING:
    from steptime.core.case import Case
    from steptime.core.record import Record
    from steptime.plan.expand import Plan

SHIPPED = "scaling"
KINDS = {"weak": ("weak",), "strong": ("strong",), "both": ("weak", "strong")}
RATES = {"kbit": 125.0, "mbit": 125e3, "gbit": 125e6}
COUNTS = (1, 2)
INSTEAD = {"exchange": "Leave it out, or name one that exchanges.", "devices": "Use --devices 1,2."}
NO_SERIES = (
    "Nothing here is a series: that takes the same case with two numbers of devices or more, exchange=allreduce, and "
    "the same batch on each of them (weak) or on all together (strong)."
)


def scaling_command(
    plan: Annotated[
        str, typer.Argument(help="A plan file, or the name of a shipped plan.", show_default=False)
    ] = "",
    workload: Annotated[
        str, typer.Option(help="A network's name, or FILE.py:NAME.", show_default=False)
    ] = "",
    devices: Annotated[
        str, typer.Option(help="Numbers of devices: 1,2,4.", show_default=False)
    ] = "",
    kind: Annotated[str, typer.Option(help="weak, strong or both.")] = "both",
    preset: Annotated[
        str, typer.Option(help="quick, standard, gold or single.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, any setting; repeatable.")
    ] = None,
    predict: Annotated[
        str, typer.Option(help="Numbers of devices: 8,64,64@10gbit.", show_default=False)
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what is already there.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how speed grows with devices.

    Every number of devices is measured with the exchange of gradients and, side by side, without it. Without a plan
    and a workload: the shipped plan `scaling`. What was measured before is not measured twice."""
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    wanted = [_wish(word) for word in predict.split(",")] if predict else []
    chosen = settings([*([f"workload={workload}"] if workload else []), *(set_ or [])])
    named = plan or ("" if "workload" in chosen else SHIPPED)
    planned, cases = _planned(named, chosen, _counts(devices), preset, KINDS[kind])
    records, fresh = _measured(planned, cases, again=again)
    _answer(
        records, [one for one in _series(records) if one.kind in KINDS[kind]], wanted, json=json
    )
    if not json:
        from steptime.cli.render.results import say_stored

        say_stored(records, store_folder(), fresh=fresh)
    failed = sum(record.status != "ok" for record in records)
    if failed:
        raise typer.Exit(ALL_FAILED if failed == len(records) else SOME_FAILED)


def _counts(text: str) -> list[int]:
    words = text.split(",") if text else []
    if not all(re.fullmatch(r"[1-9][0-9]{0,5}", word) for word in words):
        raise SteptimeError(f"--devices takes whole numbers such as 1,2,4; found {text!r}.")
    counts = sorted({int(word) for word in words})
    if len(counts) == 1:
        raise SteptimeError(
            f"One number of devices makes no series, found {text!r}: try --devices 1,{max(2, counts[0])}."
        )
    return counts


def _wish(word: str) -> tuple[int, float | None]:
    found = re.fullmatch(r"([1-9][0-9]{0,8})(?:@([0-9]*\.?[0-9]+)(kbit|mbit|gbit))?", word.strip())
    if not found:
        raise SteptimeError(
            f"--predict takes numbers of devices, and behind one its bandwidth: 8,64,64@10gbit; found {word!r}."
        )
    rate = float(found[2]) * RATES[found[3]] if found[2] else None
    if rate == 0:
        raise SteptimeError(f"Nothing can be exchanged at {word!r}.")
    return int(found[1]), rate


def _planned(
    name: str, chosen: dict[str, Any], counts: list[int], preset: str, kinds: Sequence[str]
) -> tuple[Plan, list[Case]]:
    """Cases of a plan that has series of its own, or the series of each case of one that has none."""
    from steptime.analysis.scaling.series import of_kinds, planned, shared_threads

    plan = read_plan(name, chosen, preset)
    if not any(case.exchange != "none" for case in plan.cases):
        for word, instead in INSTEAD.items():
            if word in chosen:
                raise SteptimeError(
                    f"A series has its own {word}, found {word}={chosen[word]}. {instead}"
                )
        numbers, cpus = counts or list(COUNTS), len(os.sched_getaffinity(0))
        bases = [shared_threads(case, numbers, cpus) for case in plan.cases]
        return plan, [one for base in bases for one in planned(base, numbers, kinds)]
    if counts:
        plan = read_plan(name, {**chosen, "devices": counts}, preset)
    return plan, of_kinds(plan.cases, kinds)


def _measured(plan: Plan, cases: list[Case], *, again: bool) -> tuple[list[Record], bool]:
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


def _series(records: Sequence[Record]) -> list[Any]:
    from steptime.analysis.scaling.series import found

    return found(records)


def _answer(records: Sequence[Record], series: list[Any], wanted: list[Any], *, json: bool) -> None:
    from steptime.analysis.scaling.report import report
    from steptime.cli.render import scaling_table

    failed = [record for record in records if not record.measurements]
    if not series and not failed:
        raise SteptimeError(NO_SERIES)
    told = [report(one, wanted) for one in series]
    if json:
        lost = [
            {"case": record.case.to_dict(), "failure": vars(record.failures[-1])}
            for record in failed
        ]
        output.document({"session": records[0].session, "series": told, "failed": lost})
        return
    scaling_table.show(told)
    for record in failed:
        output.say(f"failed: {record.case.label}: {record.status}. {record.failures[-1].reason}")
