"""Results that cannot be true: beyond what a device can do, or contradicting themselves.

Such a result is shown with the reason and never ranked. Knows no file format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from steptime.core.foreign import ForeignRun

# Cards clock above the figures of their makers.
MARGIN = 1.15
# The fastest x86 processor on sale reaches 6.2 GHz.
HIGHEST_CLOCK_HERTZ = 7e9
# Per core; today's cores have two that multiply and two that add.
VECTOR_UNITS = 4
# Operations of an AMX unit per cycle: twice those of the first, 16 x 16 pairs of bf16.
TILE = 2048
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
HALF_PRECISIONS = ("amp", "bf16", "amp_bf16", "amp_fp16")


@dataclass(frozen=True)
class Device:
    """Peaks of one device by its maker, without sparsity: TFLOP/s by precision, and GB/s."""

    fp32: float
    fp16: float | None = None
    int8: float | None = None
    fp8: float | None = None
    tf32: float | None = None
    bandwidth: float | None = None

    def peak(self, precision: str) -> float | None:
        """In FLOP/s. What a source calls fp32 may run as TF32 on a device that has it."""
        name = precision.lower()
        teraflops = {
            "fp32": max(self.fp32, self.tf32 or 0),
            "tf32": self.tf32,
            "fp16": self.fp16 or self.fp32,
            "fp8": self.fp8,
            "int8": self.int8,
        }.get("fp16" if name in HALF_PRECISIONS else name)
        return None if teraflops is None else teraflops * 1e12


# The first pattern that matches a device's name counts: longer names precede those they contain.
DEVICES: tuple[tuple[str, Device], ...] = (
    (r"gh200", Device(67, 990, 1979, 1979, 495, 4900)),
    (r"gb200|b200", Device(80, 2500, 5000, 5000, 1250, 8000)),
    (r"h200", Device(67, 990, 1979, 1979, 495, 4800)),
    (r"h100", Device(67, 990, 1979, 1979, 495, 3360)),
    (r"a100", Device(19.5, 312, 624, None, 156, 2039)),
    (r"a30\b", Device(10.3, 165, 330, None, 82, 933)),
    (r"a40\b", Device(37.4, 150, 299, None, 75, 696)),
    (r"a10\b", Device(31.2, 125, 250, None, 62.5, 600)),
    (r"a6000", Device(38.7, 155, 310, None, 77.4, 768)),
    (r"l40s?\b", Device(91.6, 366, 733, 733, 183, 864)),
    (r"l4\b", Device(30.3, 121, 242, 242, 60, 300)),
    (r"t4\b", Device(8.1, 65, 130, None, None, 320)),
    (r"v100", Device(16.4, 131, None, None, None, 1134)),
    (r"p100", Device(10.6, 21.2, None, None, None, 732)),
    (r"k80", Device(4.37, None, None, None, None, 240)),
    (r"m40\b", Device(7.0, None, None, None, None, 288)),
    (r"mi300x", Device(163, 1307, 2615, 2615, 654, 5300)),
    (r"mi25\b", Device(12.3, 24.6, None, None, None, 484)),
    (r"vega ?f", Device(13.1, 26.2, None, None, None, 484)),
    (r"radeon ?pro ?vii", Device(13.1, 26.2, None, None, None, 1024)),
    (r"pro ?6000", Device(126, 504, 1008, 1008, 252, 1792)),
    (r"5090", Device(105, 419, 838, 838, 210, 1792)),
    (r"4090", Device(82.6, 330, 661, 661, 165, 1008)),
    (r"3090", Device(35.6, 142, 284, None, 71, 936)),
    (r"3080", Device(29.8, 119, 238, None, 59.5, 760)),
    (r"3070", Device(20.3, 81, 163, None, 40.6, 448)),
    (r"2080 ?ti", Device(13.5, 108, 215, None, None, 616)),
    (r"2080 ?super", Device(11.2, 89, 178, None, None, 496)),
    (r"rtx 8000|rtx 6000", Device(16.3, 130, 261, None, None, 672)),
    (r"1080 ?ti", Device(11.9, None, 47.5, None, None, 484)),
    (r"titan ?xp", Device(12.2, None, 48.6, None, None, 548)),
    (r"titan ?x ?(?:\(|pascal)", Device(11.4, None, 45.5, None, None, 480)),
    (r"titan ?x", Device(7.0, None, None, None, None, 336)),
    (r"xeon phi.*7250", Device(6.1, None, None, None, None, 490)),
)


# Tens of thousands of rows name a few dozen devices.
@cache
def find_device(name: str) -> Device | None:
    """The peaks of a known device, whatever the spelling of its name."""
    text = re.sub(r"[_\s-]+", " ", name.lower())
    # 8xA100, rtx3090
    text = re.sub(r"\b(?:\d+x|[rg]tx|nvidia|tesla|geforce|quadro)(?=[a-z0-9])", "", text)
    for pattern, device in DEVICES:
        if re.search(rf"(?<![a-z0-9])(?:{pattern})(?!\d)", text):
            return device
    return None


def processor_peaks(machine: dict[str, Any]) -> Device | None:
    """What no x86 processor with these threads and instructions can exceed; None if unknown.

    Each thread counts as a core, since virtual machines do not tell them apart."""
    flags = machine.get("vector_flags") or ()
    threads = machine.get("threads")
    if "avx" not in flags or not threads:
        return None
    teraflops = threads * HIGHEST_CLOCK_HERTZ / 1e12
    # Bits per cycle: a multiplication and an addition each.
    width = 512 if "avx512f" in flags else 256
    bits = 2 * VECTOR_UNITS * width
    fp16 = max(bits / 16, TILE if "amx_bf16" in flags else 0)
    int8 = max(bits / 8, 2 * TILE if "amx_int8" in flags else 0)
    return Device(teraflops * bits / 32, teraflops * fp16, teraflops * int8)


class _Claim(NamedTuple):
    """What a result claims, and the device that it names."""

    dimensions: dict[str, Any]
    metrics: dict[str, float]
    device: Device | None

    @property
    def devices(self) -> int:
        devices: int = self.dimensions.get("devices") or 1
        return devices


def implausible_reason(
    dimensions: dict[str, Any], metrics: dict[str, float], device: Device | None = None
) -> str:
    """Why a result cannot be true; empty if it can. By default the device is found by its name."""
    device = device or find_device(str(dimensions.get("device", "")))
    claim = _Claim(dimensions, metrics, device)
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
    peak = claim.device.peak(str(claim.dimensions.get("precision") or "fp32"))
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
