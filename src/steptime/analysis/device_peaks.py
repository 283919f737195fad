"""What devices can do at most: GPUs by the figures of their makers, processors by their units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

# The fastest processor on sale.
HIGHEST_CLOCK_HERTZ = 6.2e9
# Per core, each with a multiply-add per lane and cycle.
VECTOR_UNITS = 2
# Operations of an AMX unit per cycle: twice those of the first, 16 x 16 pairs of bf16.
TILE = 2048
# A 128-bit unit of an ARM core multiplies small matrices: how much faster than fp32.
ARM_BF16, ARM_INT8 = 4, 8
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

    def claimed_peak(self, precision: str) -> float | None:
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

    def peak(self, precision: str) -> float:
        """In FLOP/s, of a precision that is certain.

        What the device has no units for runs in a higher precision. Matrix units for fp64 are as
        fast as fp32 at most."""
        fp16 = self.fp16 or self.fp32
        teraflops = {
            "fp64": self.fp32,
            "fp32": self.fp32,
            "tf32": self.tf32 or self.fp32,
            "fp16": fp16,
            "bf16": fp16,
            "fp8": self.fp8 or fp16,
            # Older devices multiply four pairs of int8 per lane of fp32.
            "int8": max(self.int8 or 0.0, 4 * self.fp32),
        }
        return teraflops[precision] * 1e12


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


def processor_peaks(machine: dict[str, Any], threads: int | None = None) -> Device | None:
    """What no processor with these cores and instructions can exceed; None if unknown.

    `threads`: how many of its hardware threads are used, if not all."""
    all_threads = machine.get("threads")
    cores = machine.get("cores") or all_threads
    if not cores:
        return None
    if threads:
        # A thread cannot do more than a core.
        cores = min(cores, threads)
    clock_mhz = machine.get("clock_most_mhz")
    clock = clock_mhz * 1e6 if clock_mhz else HIGHEST_CLOCK_HERTZ
    flags = machine.get("vector_flags") or ()
    bits = VECTOR_UNITS * _vector_width(machine.get("architecture"), flags)
    # Operations per cycle: a multiplication and an addition each.
    fp32 = 2 * bits / 32
    fp16 = max(2 * fp32, TILE if "amx_bf16" in flags else 0)
    int8 = max(4 * fp32, 2 * TILE if "amx_int8" in flags else 0)
    if "asimd" in flags:
        fp16, int8 = ARM_BF16 * fp32, ARM_INT8 * fp32
    teraflops = cores * clock / 1e12
    return Device(teraflops * fp32, teraflops * fp16, teraflops * int8)


def _vector_width(architecture: str | None, flags: Sequence[str]) -> int:
    """Bits of one unit. Other architectures have more and narrower units: 1,024 bits in all."""
    is_x86 = "avx" in flags or architecture in ("x86_64", "AMD64")
    if "avx512f" in flags or not is_x86:
        return 512
    return 256 if "avx" in flags else 128


def fastest_device() -> Device:
    """Not sold: the best of each figure, for boards whose name is unknown."""
    devices = [device for _, device in DEVICES]
    return Device(
        fp32=max(device.fp32 for device in devices),
        fp16=max(device.fp16 or 0.0 for device in devices),
        int8=max(device.int8 or 0.0 for device in devices),
        fp8=max(device.fp8 or 0.0 for device in devices),
        tf32=max(device.tf32 or 0.0 for device in devices),
    )
