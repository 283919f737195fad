"""One run by itself: its numbers with their doubts, its steps over time, where it comes from, how to repeat it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from fastapi.responses import HTMLResponse

from steptime.analysis.by_rank import by_rank
from steptime.analysis.certificates import covering
from steptime.analysis.result import Result, result
from steptime.charts.monitor import watched
from steptime.charts.step_profile import look_inside, power, roofline, words
from steptime.charts.steps import histogram, strip
from steptime.core.accuracy import is_low
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.catalogue import METRICS, word
from steptime.index.history import CONFIGURATION
from steptime.index.query import Query
from steptime.index.rows import dimensions, quarantine
from steptime.web.context import Desk
from steptime.web.pages.trace import perfetto_folder
from steptime.web.rank_section import exchanged, headline, peaks_of

NO_SENSOR = "only boards with NVML tell them, and this run was on the CPU"
NO_READING = "this board told nothing, or nvidia-ml-py is not installed where the run was"


def own_page(desk: Desk, record: Record) -> HTMLResponse:
    numbers = result(record) if record.measurements else None
    found = covering(record.last, desk.source.certificates())
    peaks = desk.source.peaks(record.last.machine, record.case.device)
    peak = peaks.get(record.case.precision)
    flops = (
        numbers.costs.model_flops_per_second if numbers else None
    )  # of all ranks, and a peak is one device's
    share = flops / peak / peaks_of(record.case) if flops and peak else None
    profile = look_inside(desk.source, record)
    line = roofline(record, numbers, profile, peaks)
    return desk.page(
        "run.html", here="/runs", record=record, numbers=numbers, command=command(record), peak=peak, share=share,
        profile=profile, roofline=line, power=power(record), watched=watched(record),
        perfetto=perfetto_folder() is not None,
        headline=headline(record.case, numbers) if numbers else f"{record.status}: {record.failures[-1].reason}",
        by_rank=by_rank(record), exchanged=exchanged(numbers.costs.exchange) if numbers else "",
        strip=strip(record) if numbers else None, histogram=histogram(record) if numbers else None, proof=found,
        doubt=quarantine(record, numbers) if numbers else "",
        details=_details(record, numbers), history=history(record),
        missing=missing(record, numbers, {"certificate": found, "peak": peak, "inside": profile, "roofline": line}),
    )  # fmt: skip


def foreign_page(desk: Desk, run: ForeignRun) -> HTMLResponse:
    told = {
        METRICS[name].axis if name in METRICS else name: value
        for name, value in run.metrics.items()
    }
    return desk.page("foreign.html", here="/runs", run=run, metrics_told=told)


def command(record: Record) -> str:
    """What measures this again."""
    found = ["steptime run", words(record.case)]
    found += [
        f"--set {shlex.quote(f'protocol.{name}={value}')}"
        for name, value in record.last.protocol.changed().items()
    ]
    return " ".join([*found, f"--preset {record.last.protocol.preset}", "--again"])


def history(record: Record) -> str:
    """Where the same configuration's past is shown; servers of one kind have one."""
    told = {
        name: value
        for name, value in dimensions(record).items()
        if name in CONFIGURATION and name != "server"
    }
    same = tuple((name, (word(value),)) for name, value in told.items() if value not in (None, ""))
    return Query(y="step_time", where=same).to_url()


def missing(record: Record, numbers: Result | None, here: dict[str, Any]) -> dict[str, str]:
    """What this page could show, and the command that measures it."""
    case, found = record.case, dict[str, str]()
    if numbers is None:
        return found
    if not here["certificate"]:
        wanted = f"--framework {case.framework} --mode {case.mode} --precision {case.precision}"
        found["Proof that it computes the network"] = (
            f"steptime certify {shlex.quote(case.workload)} {wanted}"
        )
    if not here["inside"]:
        found["Phases, operators, memory and timeline"] = (
            f"steptime profile {words(replace(case, trial=0))}"
        )
    if not here["peak"]:
        found["Share of what the machine can do"] = "steptime machine"
    elif not here["roofline"] and here["inside"]:
        found["Its place under the peaks"] = "steptime machine"
    if numbers.times.typical_time_seconds.low is None:
        found["An interval across processes"] = command(record).replace(
            "--preset quick", "--preset standard"
        )
    if not any("monitor" in attempt.findings for attempt in record.attempts):
        found["What the whole process used, over time"] = (
            f"{command(record)} --set protocol.monitor_seconds=0.5"
        )
    return found | _without_command(record)


def _without_command(record: Record) -> dict[str, str]:
    case, found = record.case, dict[str, str]()
    if is_low(case.precision) and not (record.accuracy or {}).get("task"):
        found["What the precision costs on the task"] = (
            f"steptime train {shlex.quote(case.workload)} --save weights.safetensors, then this run with "
            "--set weights=weights.safetensors"
        )
    if power(record) is None:
        found["Power and clocks over time"] = NO_SENSOR if case.device == "cpu" else NO_READING
    return found


def _details(record: Record, numbers: Result | None) -> dict[str, dict[str, Any]]:
    last, found = record.last, dict[str, dict[str, Any]]()
    if accuracy := last.findings.get("accuracy"):
        found["What the precision costs"] = accuracy
    found |= {
        word.capitalize(): last.findings[word]
        for word in ("data", "staging")
        if word in last.findings
    }
    if numbers is not None:
        facts = {key: value for key, value in numbers.identity.facts.items() if value is not None}
        found |= {
            "Memory, bytes": numbers.costs.memory_bytes,
            "Start-up, seconds": numbers.costs.start_seconds,
            "Facts": facts,
        }
    found |= {
        "Configuration": record.case.to_dict(),
        "Software": last.software,
        "Machine": last.machine,
    }
    found |= {"Work": last.network, "Environment": last.environment}
    return {title: values for title, values in found.items() if values}
