"""What the page of a run measured here shows, and what it could show after another command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any

from steptime.analysis.by_rank import by_rank
from steptime.analysis.certificates import Certificate, find_certificate
from steptime.analysis.result import Result, result
from steptime.analysis.step_profile import Profile
from steptime.charts.monitor import monitor_view
from steptime.charts.step_profile import Roofline, find_profile, make_roofline, power_view
from steptime.charts.steps import histogram_spec, strip_spec
from steptime.core.accuracy import is_low
from steptime.core.record import Record
from steptime.index.catalogue import format_value
from steptime.index.history import CONFIGURATION
from steptime.index.query import Query
from steptime.index.rows import dimensions, quarantine_reason
from steptime.index.workspace import Workspace
from steptime.report.rerun import case_flags, rerun_command
from steptime.web.perfetto import perfetto_folder
from steptime.web.rank_section import exchange_sentence, headline, peak_count

NO_SENSOR = "only GPUs with NVML report them, and this run was on the CPU"
NO_READING = "this GPU reported nothing, or nvidia-ml-py was not installed for the run"


@dataclass(frozen=True)
class Evidence:
    """What the store holds about a run besides its own numbers."""

    certificate: Certificate | None
    profile: Profile | None
    peaks: dict[str, float]
    peak: float | None  # of the run's precision
    roofline: Roofline | None


def run_values(workspace: Workspace, record: Record) -> dict[str, Any]:
    """The values of the template run.html."""
    numbers = result(record) if record.measurements else None
    evidence = _find_evidence(workspace, record, numbers)
    values = {
        "record": record,
        "numbers": numbers,
        "headline": f"{record.status}: {record.failures[-1].reason}" if not numbers else "",
        "command": rerun_command(record),
        "certificate": evidence.certificate,
        "profile": evidence.profile,
        "roofline": evidence.roofline,
        "power": power_view(record),
        "monitor": monitor_view(record),
        "has_perfetto": perfetto_folder() is not None,
        "by_rank": by_rank(record),
        "details": _list_details(record, numbers),
        "history": history_url(record),
        "missing": list_missing(record, numbers, evidence),
    }
    if numbers:
        values |= _result_values(record, numbers, evidence.peak)
    return values


def _find_evidence(workspace: Workspace, record: Record, numbers: Result | None) -> Evidence:
    peaks = workspace.peaks(record.last.machine, record.case.device)
    profile = find_profile(workspace, record)
    return Evidence(
        certificate=find_certificate(record.last, workspace.certificates()),
        profile=profile,
        peaks=peaks,
        peak=peaks.get(record.case.precision),
        roofline=make_roofline(record, numbers, profile, peaks),
    )


def _result_values(record: Record, numbers: Result, peak: float | None) -> dict[str, Any]:
    """What only a run with a result has."""
    flops = numbers.costs.model_flops_per_second
    share = None
    if flops and peak:
        # The arithmetic is that of all ranks, and a peak is that of one device.
        share = flops / peak / peak_count(record.case)
    return {
        "headline": headline(record.case, numbers),
        "share": share,
        "exchange": exchange_sentence(numbers.costs.exchange),
        "strip": strip_spec(record),
        "histogram": histogram_spec(record),
        "quarantine": quarantine_reason(numbers),
    }


def history_url(record: Record) -> str:
    """The query of the same configuration over time. Servers of one type share a history."""
    where = []
    for name, value in dimensions(record).items():
        if name in CONFIGURATION and name != "server" and value not in (None, ""):
            where.append((name, (format_value(value),)))
    return Query(y="step_time", where=tuple(where)).to_url()


def list_missing(record: Record, numbers: Result | None, evidence: Evidence) -> dict[str, str]:
    """What this page could show, and the command that measures it."""
    if numbers is None:
        return {}
    case = record.case
    command = rerun_command(record)
    missing = {}
    if not evidence.certificate:
        flags = f"--framework {case.framework} --mode {case.mode} --precision {case.precision}"
        network = shlex.quote(case.workload)
        missing["Proof that it computes the network"] = f"steptime certify {network} {flags}"
    if not evidence.profile:
        # A profile is one of a configuration, not of one of its repetitions.
        flags = case_flags(replace(case, trial=0))
        missing["Phases, operators, memory and timeline"] = f"steptime profile {flags}"
    if not evidence.peak:
        missing["Share of the measured peaks"] = "steptime machine"
    elif not evidence.roofline and evidence.profile:
        missing["Roofline"] = "steptime machine"
    if numbers.times.typical_time_seconds.low is None:
        missing["An interval across processes"] = rerun_command(record, with_interval=True)
    if not any("monitor" in attempt.findings for attempt in record.attempts):
        monitored = f"{command} --set protocol.monitor_seconds=0.5"
        missing["Resources of the whole process over time"] = monitored
    return missing | _list_unmeasurable(record)


def _list_unmeasurable(record: Record) -> dict[str, str]:
    """What needs more than one command, or another machine."""
    case = record.case
    missing = {}
    if is_low(case.precision) and not (record.accuracy or {}).get("task"):
        missing["Accuracy loss on the task"] = (
            f"steptime train {shlex.quote(case.workload)} --save weights.safetensors, "
            "then this run with --set weights=weights.safetensors"
        )
    if power_view(record) is None:
        reason = NO_SENSOR if case.device == "cpu" else NO_READING
        missing["Power and clocks over time"] = reason
    return missing


def _list_details(record: Record, numbers: Result | None) -> dict[str, dict[str, Any]]:
    """The tables at the end of the page; empty ones are left out."""
    last = record.last
    details: dict[str, dict[str, Any]] = {
        "Accuracy": record.task or {},
        "Accuracy loss": last.findings.get("accuracy") or {},
        "Data": last.findings.get("data") or {},
        "Staging": last.findings.get("staging") or {},
    }
    if numbers is not None:
        facts = {key: value for key, value in numbers.identity.facts.items() if value is not None}
        details["Memory, bytes"] = numbers.costs.memory_bytes
        details["Start-up, seconds"] = numbers.costs.start_seconds
        details["Facts"] = facts
    details["Configuration"] = record.case.to_dict()
    details["Software"] = last.software
    details["Machine"] = last.machine
    details["Work"] = last.network
    details["Environment"] = last.environment
    return {title: values for title, values in details.items() if values}
