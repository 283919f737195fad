"""What this machine is and how it fares: read from /proc, /sys and NVML. Needs no framework. None: it does not say."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from steptime.engine import gpu
from steptime.engine.channels import cpu_ticks
from steptime.engine.clock import source

ROOT = Path("/")
CPUS = "sys/devices/system/cpu"
HARDWARE = (
    "cpu",
    "sockets",
    "cores",
    "threads",
    "caches_bytes",
    "memory_gib",
    "numa_nodes",
    "gpus",
)


def inventory(root: Path = ROOT, nvml: Any = None) -> dict[str, Any]:
    """Hardware, system and health in one dictionary; `fingerprint` is equal wherever the hardware is."""
    nvml = nvml or gpu.open_nvml()
    found = {**hardware(root), "gpus": gpu.inventory(nvml), **system(root)}
    return {"fingerprint": fingerprint(found), **found, "health": health(root, nvml)}


def fingerprint(found: dict[str, Any]) -> str:
    """Of what can be bought, not of what is installed or allowed: drivers, power limits and affinity may change."""
    same = {name: found.get(name) for name in HARDWARE}
    same["gpus"] = [(board["name"], board["memory_bytes"]) for board in found.get("gpus") or ()]
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:12]


def hardware(root: Path = ROOT) -> dict[str, Any]:
    cpus = _cpuinfo(root)
    first = cpus[0] if cpus else {}
    sockets = {cpu.get("physical id") for cpu in cpus}
    cores = {(cpu.get("physical id"), cpu.get("core id", cpu.get("processor"))) for cpu in cpus}
    memory = _memory_bytes(root, "MemTotal")
    return {
        "cpu": first.get("model name") or platform.machine(),
        "architecture": platform.machine(),
        "sockets": len(sockets) or None,
        "cores": len(cores) or None,
        "threads": len(cpus) or os.cpu_count(),
        "threads_usable": len(usable_cpus()),
        "caches_bytes": caches(root),
        "vector_flags": sorted(
            _VECTORS & set(first.get("flags", first.get("Features", "")).split())
        ),
        "memory_bytes": memory,
        "memory_gib": None if memory is None else round(memory / 2**30),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
    }


_VECTORS = {
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "sve",
}


def system(root: Path = ROOT) -> dict[str, Any]:
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "os": _os_name(root),
        "python": platform.python_version(),
        "libc": _libc(),
        "clock_source": source(root),
    }


def health(root: Path = ROOT, nvml: Any = None) -> dict[str, Any]:
    """What may disturb a measurement here and now."""
    ticks = cpu_ticks(root)
    return {
        "governor": _read(root / CPUS / "cpu0/cpufreq/scaling_governor"),
        "turbo": turbo(root),
        "smt_shared": smt_shared(root, usable_cpus()),
        "virtualised": virtualised(root),
        "steal_share": ticks[0] / ticks[1] if ticks and ticks[1] else None,
        "pressure_share": {what: pressure(root, what) for what in ("cpu", "io", "memory")},
        "load": load(root),
        "swap_used_bytes": swap_used_bytes(root),
        "memory_available_bytes": _memory_bytes(root, "MemAvailable"),
        "clock_source": source(root),
        "other_gpu_processes": gpu.other_processes(nvml),
    }


def usable_cpus() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def caches(root: Path = ROOT) -> dict[str, int] | None:
    """Bytes that one core sees: `L1d`, `L1i`, `L2`, `L3`."""
    found = {}
    for index in sorted((root / CPUS / "cpu0/cache").glob("index[0-9]*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if level and kind and size:
            found[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = _bytes(size)
    return found or None


def turbo(root: Path = ROOT) -> bool | None:
    """Whether the CPU may run faster than its nominal clock, which then depends on heat and neighbours."""
    held = _read(root / CPUS / "intel_pstate/no_turbo")
    if held is not None:
        return held == "0"
    boost = _read(root / CPUS / "cpufreq/boost")
    return None if boost is None else boost == "1"


def smt_shared(root: Path, usable: set[int]) -> bool | None:
    """Whether two of the CPUs that we may use are one core. None: the system does not say who is whose sibling."""
    pairs = [_read(root / CPUS / f"cpu{cpu}/topology/thread_siblings_list") for cpu in usable]
    if all(pair is None for pair in pairs):
        return None
    return any(len(_cpu_list(pair) & usable) > 1 for pair in pairs if pair is not None)


def virtualised(root: Path = ROOT) -> bool | None:
    cpus = _cpuinfo(root)
    return "hypervisor" in cpus[0].get("flags", "").split() if cpus else None


def pressure(root: Path, what: str) -> float | None:
    """Share of the last ten seconds in which some task waited for it."""
    text = _read(root / "proc/pressure" / what)
    with suppress(AttributeError, IndexError, ValueError):
        return float(text.split("avg10=")[1].split()[0]) / 100  # type: ignore[union-attr]
    return None


def load(root: Path = ROOT) -> float | None:
    """Tasks that ran or wanted to, over the last minute."""
    text = _read(root / "proc/loadavg")
    return float(text.split()[0]) if text else None


def swap_used_bytes(root: Path = ROOT) -> int | None:
    total, free = _memory_bytes(root, "SwapTotal"), _memory_bytes(root, "SwapFree")
    return None if total is None or free is None else total - free


def _cpuinfo(root: Path) -> list[dict[str, str]]:
    parts = [
        part for part in (_read(root / "proc/cpuinfo") or "").split("\n\n") if "processor" in part
    ]
    return [dict(_field(line) for line in part.splitlines() if ":" in line) for part in parts]


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _memory_bytes(root: Path, name: str) -> int | None:
    for line in (_read(root / "proc/meminfo") or "").splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    return None


def _os_name(root: Path) -> str:
    for line in (_read(root / "etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return sys.platform


def _libc() -> str | None:
    with suppress(ValueError, OSError, AttributeError):
        return os.confstr("CS_GNU_LIBC_VERSION")
    return None


def _bytes(size: str) -> int:
    """`32K`, `1024K`, `16M`."""
    scale = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(size[-1])
    return int(size) if scale is None else scale * int(size[:-1])


def _cpu_list(text: str) -> set[int]:
    """`0-2,5` is {0, 1, 2, 5}."""
    bounds = [part.split("-") for part in text.split(",")]
    return {cpu for bound in bounds for cpu in range(int(bound[0]), int(bound[-1]) + 1)}


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
