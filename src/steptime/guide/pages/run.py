"""One run by itself: its numbers with their doubts, its steps over time, where it comes from, how to repeat it."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import Any

from fastapi.responses import HTMLResponse

from steptime.analysis.certificates import covering
from steptime.analysis.result import Result, result
from steptime.core.accuracy import is_low
from steptime.core.case import Case
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.guide.catalogue import METRICS
from steptime.guide.desk import Desk
from steptime.guide.query import Query
from steptime.guide.steps import histogram, strip

ALWAYS = ("framework", "mode", "device", "precision")
"""Settings whose default depends on the machine or the version: a command to repeat a run names them."""
FLAGS = {"workload": "--workload", "phase": "--phase", "batch_size": "--batch-size"}
NO_COMMAND = {
    "Operators and timeline": "no command of this version measures them",
    "Memory by class": "no command of this version measures it",
}


def own_page(desk: Desk, record: Record) -> HTMLResponse:
    numbers = result(record) if record.measurements else None
    found = covering(record.last, desk.source.certificates())
    roof = desk.source.roof(record.last.machine, record.case.device, record.case.precision)
    share = numbers.model_flops_per_second / roof if numbers and numbers.model_flops_per_second and roof else None
    return desk.page(
        "run.html", here="/runs", record=record, numbers=numbers, command=command(record), roof=roof, share=share,
        headline=numbers.headline if numbers else f"{record.status}: {record.failures[-1].reason}",
        strip=strip(record) if numbers else None, histogram=histogram(record) if numbers else None, proof=found,
        details=_details(record, numbers), history=history(record.case),
        missing=missing(record, numbers, certificate=found is not None, roof=roof is not None),
    )  # fmt: skip


def foreign_page(desk: Desk, run: ForeignRun) -> HTMLResponse:
    told = {METRICS[name].axis if name in METRICS else name: value for name, value in run.metrics.items()}
    return desk.page("foreign.html", here="/runs", run=run, metrics_told=told)


def command(record: Record) -> str:
    """What measures this again."""
    case, words = record.case, ["steptime run"]
    words += [f"{flag} {shlex.quote(str(getattr(case, name)))}" for name, flag in FLAGS.items()]
    for one in fields(case):
        value = getattr(case, one.name)
        if one.name not in FLAGS and (one.name in ALWAYS or value != one.default):
            words.append(f"--set {shlex.quote(f'{one.name}={value}')}")
    words += [
        f"--set {shlex.quote(f'protocol.{name}={value}')}" for name, value in record.last.protocol.changed().items()
    ]
    return " ".join([*words, f"--profile {record.last.protocol.profile}", "--again"])


def history(case: Case) -> str:
    """Where the same configuration's past is shown."""
    same = {"model": case.workload, "phase": case.phase, "framework": case.framework, "mode": case.mode}
    same |= {"precision": case.precision, "replica_batch": str(case.batch_size), "device": case.device}
    return Query(y="step_time", where=tuple((name, (value,)) for name, value in same.items())).to_url()


def missing(record: Record, numbers: Result | None, *, certificate: bool, roof: bool) -> dict[str, str]:
    """What this page could show, and the command that measures it."""
    case, found = record.case, dict[str, str]()
    if numbers is None:
        return found
    if not certificate:
        wanted = f"--framework {case.framework} --mode {case.mode} --precision {case.precision}"
        found["Proof that it computes the network"] = f"steptime certify {shlex.quote(case.workload)} {wanted}"
    if not roof:
        found["Share of what the machine can do"] = "steptime machine"
    if numbers.typical_time_seconds.low is None:
        found["An interval across processes"] = command(record).replace("--profile quick", "--profile standard")
    if is_low(case.precision) and not (record.accuracy or {}).get("task"):
        found["What the precision costs on the task"] = (
            f"steptime train {shlex.quote(case.workload)} --save weights.safetensors, then this run with "
            "--set weights=weights.safetensors"
        )
    return found | NO_COMMAND


def _details(record: Record, numbers: Result | None) -> dict[str, dict[str, Any]]:
    last, found = record.last, dict[str, dict[str, Any]]()
    if accuracy := last.findings.get("accuracy"):
        found["What the precision costs"] = accuracy
    if numbers is not None:
        facts = {key: value for key, value in numbers.facts.items() if value is not None}
        found |= {"Memory, bytes": numbers.memory_bytes, "Start-up, seconds": numbers.start_seconds, "Facts": facts}
    found |= {"Configuration": record.case.to_dict(), "Software": last.software, "Machine": last.machine}
    found |= {"Work": last.network, "Environment": last.environment}
    return {title: values for title, values in found.items() if values}
