"""What cannot be true: results beyond what a device can do, or that contradict themselves. Knows no format.

A result that is caught here is shown with the reason and never ranked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from typing import Any

from steptime.core.foreign import ForeignRun

MARGIN = 1.15  # cards clock above what their makers print
HIGHEST_CLOCK_HERTZ = 7e9  # the fastest x86 processor sold reaches 6.2 GHz
VECTOR_UNITS = 4  # of a core; those of today have two that multiply and two that add
TILE = 2048  # operations of an AMX unit in a cycle: twice those of the first, 16 x 16 pairs of bf16
FAST_CONVOLUTION = (
    4.0  # Winograd's F(4x4, 3x3) needs a quarter of the multiplications (Lavin and Gray, 2016)
)
SUPER_LINEAR = 1.25  # larger caches in sum may speed a device up, but not by more
ACROSS_SERVERS = 1.5  # other hosts and power limits come on top
BATCH_TOLERANCE = 0.05
SHARES = ("accuracy", "utilisation")
OTHER_THAN_SAMPLES = re.compile(
    "quer|token|word|character"
)  # units of which a sample has several, or none
MAY_BE_NEGATIVE = {"loss", "task_loss", "score", "task_metric", "temperature"}
ONE_QUESTION = (
    "model", "phase", "precision", "device", "framework", "software", "scenario", "suite", "mode", "unit", "submitter",
    "replica_batch", "operator", "shape", "data",
)  # fmt: skip


@dataclass(frozen=True)
class Device:
    """Peaks of one device as its maker prints them, without sparsity: teraflops by precision, gigabytes per second."""

    fp32: float
    fp16: float | None = None
    int8: float | None = None
    fp8: float | None = None
    tf32: float | None = None
    bandwidth: float | None = None

    def peak(self, precision: str) -> float | None:
        """In FLOP/s. What a source calls fp32 may run as TF32 on a device that has it."""
        kind = re.sub(r"^amp$|^bf16$|^amp_bf16$|^amp_fp16$", "fp16", precision.lower())
        teraflops = {
            "fp32": max(self.fp32, self.tf32 or 0), "tf32": self.tf32, "fp16": self.fp16 or self.fp32, "fp8": self.fp8,
            "int8": self.int8,
        }.get(kind)  # fmt: skip
        return None if teraflops is None else teraflops * 1e12


# The first pattern that fits a device's name counts: longer names stand before those that they contain.
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


@cache  # tens of thousands of rows name a few dozen devices
def device_of(name: str) -> Device | None:
    """The peaks of a device whose name is known here, however it is spelt."""
    text = re.sub(r"[_\s-]+", " ", name.lower())
    text = re.sub(
        r"\b(?:\d+x|[rg]tx|nvidia|tesla|geforce|quadro)(?=[a-z0-9])", "", text
    )  # 8xA100, rtx3090
    return next(
        (
            device
            for pattern, device in DEVICES
            if re.search(rf"(?<![a-z0-9])(?:{pattern})(?!\d)", text)
        ),
        None,
    )


def processor(machine: dict[str, Any]) -> Device | None:
    """What no x86 processor with this many threads and these instructions can pass. Each thread counts as a core,
    since virtual machines do not tell them apart. None: too little is known of it."""
    flags, threads = machine.get("vector_flags") or (), machine.get("threads")
    if "avx" not in flags or not threads:
        return None
    teraflops = threads * HIGHEST_CLOCK_HERTZ / 1e12
    wide = (
        2 * VECTOR_UNITS * (512 if "avx512f" in flags else 256)
    )  # bits: a multiplication and an addition of each
    fp16, int8 = (
        max(wide / 16, TILE * ("amx_bf16" in flags)),
        max(wide / 8, 2 * TILE * ("amx_int8" in flags)),
    )
    return Device(teraflops * wide / 32, teraflops * fp16, teraflops * int8)


def implausible(
    dimensions: dict[str, Any], metrics: dict[str, float], device: Device | None = None
) -> str:
    """Why a result cannot be true; nothing where it can. The device is found by its name where it is not given."""
    device = device or device_of(str(dimensions.get("device", "")))
    checks = (_signs, _shares, _batch, partial(_arithmetic, device), partial(_bandwidth, device))
    return next((reason for check in checks if (reason := check(dimensions, metrics))), "")


def judged(runs: Iterable[ForeignRun]) -> list[ForeignRun]:
    """The same runs, those in quarantine that cannot be true. Runs of one file are also held against each other."""
    known = list(runs)
    beyond = super_linear([run for run in known if not run.failure])
    return [_judged(run, beyond.get(run.place, "")) for run in known]


def super_linear(runs: list[ForeignRun]) -> dict[str, str]:
    """By place: runs that are faster on each of many devices than the same on few, first of all on the same server."""
    groups: dict[tuple[Any, ...], list[tuple[int, float, ForeignRun]]] = {}
    for run in runs:
        devices, speed = run.dimensions.get("devices"), run.metrics.get("throughput")
        if devices and speed and speed > 0 and run.dimensions.get("device"):
            key = tuple(run.dimensions.get(name) for name in ONE_QUESTION)
            for server in ("", _family(str(run.dimensions.get("server", "")))):
                groups.setdefault((server, *key), []).append((devices, speed / devices, run))
    found: dict[str, str] = {}
    for (server, *_), group in groups.items():
        limit = SUPER_LINEAR if server else ACROSS_SERVERS
        few = min(devices for devices, _, _ in group)
        fastest = max(speed for devices, speed, _ in group if devices == few)
        for devices, speed, run in group:
            if devices > few and speed > limit * fastest:
                times = devices * speed / (few * fastest)
                found[run.place] = (
                    f"{times:.1f} times as fast on {devices} devices as on {few}, beyond {devices / few:g}"
                )
    return found


def _family(server: str) -> str:
    """A server's name without how many devices it has."""
    return re.sub(r"\d+ ?x ?|x ?\d+", "", server)


def _judged(run: ForeignRun, beyond: str) -> ForeignRun:
    reasons = [*run.defects] if any("no whole number" in defect for defect in run.defects) else []
    reason = (
        run.quarantine or implausible(run.dimensions, run.metrics) or beyond or "; ".join(reasons)
    )
    return replace(run, quarantine=reason) if reason else run


def _signs(dimensions: dict[str, Any], metrics: dict[str, float]) -> str:
    below = [name for name, value in metrics.items() if value < 0 and name not in MAY_BE_NEGATIVE]
    return f"{below[0]} is negative: {metrics[below[0]]:g}" if below else ""


def _shares(dimensions: dict[str, Any], metrics: dict[str, float]) -> str:
    above = [name for name in SHARES if metrics.get(name, 0.0) > 1.0]
    return f"{above[0]} is a share, and {metrics[above[0]]:.4g} is over 1" if above else ""


def _batch(dimensions: dict[str, Any], metrics: dict[str, float]) -> str:
    batch, speed, seconds = (
        dimensions.get("effective_batch"),
        metrics.get("throughput"),
        metrics.get("step_time"),
    )
    if (
        not batch
        or not speed
        or not seconds
        or OTHER_THAN_SAMPLES.search(str(dimensions.get("unit", "")))
    ):
        return ""
    ratio = speed * seconds / batch
    if abs(ratio - 1) <= BATCH_TOLERANCE + _rounding(speed) + _rounding(seconds):
        return ""
    return f"throughput times step time is {speed * seconds:.4g}, the batch {batch}"


def _rounding(value: float) -> float:
    """The share by which a number may be off that was printed with so few digits."""
    digits = Decimal(repr(value)).as_tuple()
    exponent = digits.exponent if isinstance(digits.exponent, int) else 0
    return 0.5 * 10.0**exponent / value if exponent < 0 else 0.0


def _arithmetic(
    device: Device | None, dimensions: dict[str, Any], metrics: dict[str, float]
) -> str:
    done = metrics.get("flops")
    peak = device.peak(str(dimensions.get("precision") or "fp32")) if device else None
    if not peak or not done:
        return ""
    factor = FAST_CONVOLUTION if dimensions.get("operator") == "convolution" else 1.0
    most = peak * (dimensions.get("devices") or 1)
    if done <= MARGIN * factor * most:
        return ""
    return f"{done / 1e12:.4g} TFLOP/s on what can do {most / 1e12:.4g}"


def _bandwidth(device: Device | None, dimensions: dict[str, Any], metrics: dict[str, float]) -> str:
    found = metrics.get("bandwidth")
    if not device or not device.bandwidth or not found:
        return ""
    most = device.bandwidth * 1e9 * (dimensions.get("devices") or 1)
    return (
        ""
        if found <= MARGIN * most
        else f"{found / 1e9:.4g} GB/s on what can move {most / 1e9:.4g}"
    )
