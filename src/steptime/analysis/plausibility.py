"""Imported results that cannot be true: beyond what a device can do, or contradicting themselves.

Such a result is shown with the reason and never ranked. Knows no file format. Results measured
here have the flag `implausible` instead, because their work and their machine are known better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from steptime.analysis.device_peaks import Device, find_device
from steptime.core.foreign import ForeignRun

# Cards clock above the figures of their makers.
MARGIN = 1.15
# Winograd's F(4x4, 3x3) needs a quarter of the multiplications (Lavin and Gray, 2016).
FAST_CONVOLUTION = 4.0
# Larger caches in sum may speed a device up, but not by more.
SUPER_LINEAR = 1.25
# Other hosts and power limits come on top.
ACROSS_SERVERS = 1.5
BATCH_TOLERANCE = 0.05
SHARES = ("accuracy", "utilisation")
# Units of which a sample has several, or none.
OTHER_THAN_SAMPLES = re.compile("quer|token|word|character")
MAY_BE_NEGATIVE = {"loss", "task_loss", "score", "task_metric", "temperature"}
# Runs that agree in these dimensions differ only in their number of devices.
SAME_QUESTION = (
    "model", "phase", "precision", "device", "framework", "software", "scenario", "suite", "mode",
    "unit", "submitter", "replica_batch", "operator", "shape", "data",
)  # fmt: skip


class _Claim(NamedTuple):
    """What a result claims, and the device that it names."""

    dimensions: dict[str, Any]
    metrics: dict[str, float]
    device: Device | None

    @property
    def devices(self) -> int:
        devices: int = self.dimensions.get("devices") or 1
        return devices


def implausible_reason(dimensions: dict[str, Any], metrics: dict[str, float]) -> str:
    """Why a result cannot be true; empty if it can."""
    claim = _Claim(dimensions, metrics, find_device(str(dimensions.get("device", ""))))
    for check in (_check_signs, _check_shares, _check_batch, _check_flops, _check_bandwidth):
        reason = check(claim)
        if reason:
            return reason
    return ""


def judge_runs(runs: Iterable[ForeignRun]) -> list[ForeignRun]:
    """The same runs, with a quarantine reason on those that cannot be true.

    Runs of one file are also compared with each other."""
    judged = list(runs)
    reasons = super_linear_runs([run for run in judged if not run.failure])
    return [_judge_run(run, reasons.get(run.location, "")) for run in judged]


class _Speed(NamedTuple):
    devices: int
    per_device: float
    run: ForeignRun


def super_linear_runs(runs: list[ForeignRun]) -> dict[str, str]:
    """By place: reasons for runs that are faster per device on many devices than on few.

    The limit is tighter among runs on the same server."""
    groups: dict[tuple[Any, ...], list[_Speed]] = {}
    for run in runs:
        devices = run.dimensions.get("devices")
        speed = run.metrics.get("throughput")
        if devices and speed and speed > 0 and run.dimensions.get("device"):
            key = tuple(run.dimensions.get(name) for name in SAME_QUESTION)
            server = _server_family(str(run.dimensions.get("server", "")))
            for group_name in ("", server):
                group = groups.setdefault((group_name, *key), [])
                group.append(_Speed(devices, speed / devices, run))
    reasons: dict[str, str] = {}
    for (server, *_), group in groups.items():
        reasons |= _super_linear_in_group(group, SUPER_LINEAR if server else ACROSS_SERVERS)
    return reasons


def _super_linear_in_group(group: list[_Speed], limit: float) -> dict[str, str]:
    few = min(speed.devices for speed in group)
    fastest = max(speed.per_device for speed in group if speed.devices == few)
    reasons = {}
    for devices, per_device, run in group:
        if devices > few and per_device > limit * fastest:
            times = devices * per_device / (few * fastest)
            reasons[run.location] = (
                f"{times:.1f} times as fast on {devices} devices as on {few}, "
                f"beyond {devices / few:g}"
            )
    return reasons


def _server_family(server: str) -> str:
    """A server's name without its number of devices."""
    return re.sub(r"\d+ ?x ?|x ?\d+", "", server)


def _judge_run(run: ForeignRun, super_linear: str) -> ForeignRun:
    reason = run.quarantine or implausible_reason(run.dimensions, run.metrics) or super_linear
    if not reason and any("no whole number" in defect for defect in run.defects):
        reason = "; ".join(run.defects)
    return replace(run, quarantine=reason) if reason else run


def _check_signs(claim: _Claim) -> str:
    for name, value in claim.metrics.items():
        if value < 0 and name not in MAY_BE_NEGATIVE:
            return f"{name} is negative: {value:g}"
    return ""


def _check_shares(claim: _Claim) -> str:
    for name in SHARES:
        value = claim.metrics.get(name, 0.0)
        if value > 1.0:
            return f"{name} is a share, and {value:.4g} is over 1"
    return ""


def _check_batch(claim: _Claim) -> str:
    batch = claim.dimensions.get("effective_batch")
    speed = claim.metrics.get("throughput")
    seconds = claim.metrics.get("step_time")
    if not batch or not speed or not seconds:
        return ""
    if OTHER_THAN_SAMPLES.search(str(claim.dimensions.get("unit", ""))):
        return ""
    difference = abs(speed * seconds / batch - 1)
    if difference <= BATCH_TOLERANCE + _rounding_error(speed) + _rounding_error(seconds):
        return ""
    return f"throughput times step time is {speed * seconds:.4g}, the batch {batch}"


def _rounding_error(value: float) -> float:
    """The relative error of a number that was printed with so few digits."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= 0:
        return 0.0
    return 0.5 * 10.0**exponent / value


def _check_flops(claim: _Claim) -> str:
    flops = claim.metrics.get("flops")
    if not flops or not claim.device:
        return ""
    peak = claim.device.claimed_peak(str(claim.dimensions.get("precision") or "fp32"))
    if not peak:
        return ""
    factor = FAST_CONVOLUTION if claim.dimensions.get("operator") == "convolution" else 1.0
    most = peak * claim.devices
    if flops <= MARGIN * factor * most:
        return ""
    return f"{flops / 1e12:.4g} TFLOP/s exceeds the peak of {most / 1e12:.4g}"


def _check_bandwidth(claim: _Claim) -> str:
    bandwidth = claim.metrics.get("bandwidth")
    if not bandwidth or not claim.device or not claim.device.bandwidth:
        return ""
    most = claim.device.bandwidth * 1e9 * claim.devices
    if bandwidth <= MARGIN * most:
        return ""
    return f"{bandwidth / 1e9:.4g} GB/s exceeds the peak of {most / 1e9:.4g}"
