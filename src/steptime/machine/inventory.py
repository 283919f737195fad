"""This machine's hardware, system and health, read from /proc, /sys and NVML.

Needs no framework. None: the system does not report the value."""

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
VECTOR_FLAGS = {
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
TURBO_DRIVERS = ("intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp")
CACHE_SUFFIXES = {"Data": "d", "Instruction": "i"}
SIZE_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def inventory(root: Path = ROOT, nvml: Any = None) -> dict[str, Any]:
    """Hardware, system and health. Equal hardware has an equal `fingerprint`."""
    nvml = nvml or gpu.open_nvml()
    facts = {**hardware(root), "gpus": gpu.inventory(nvml), **system(root)}
    return {"fingerprint": fingerprint(facts), **facts, "health": health(root, nvml)}


def fingerprint(facts: dict[str, Any]) -> str:
    """Of the hardware only: drivers, power limits and affinity may change."""
    fixed = {name: facts.get(name) for name in HARDWARE}
    boards = facts.get("gpus") or ()
    fixed["gpus"] = [(board["name"], board["memory_bytes"]) for board in boards]
    text = json.dumps(fixed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def hardware(root: Path = ROOT) -> dict[str, Any]:
    cpus = _cpuinfo(root)
    first = cpus[0] if cpus else {}
    flags = first.get("flags", first.get("Features", "")).split()
    sockets = {cpu.get("physical id") for cpu in cpus}
    # Virtual machines and ARM may report no core id: then every logical CPU counts as a core.
    cores = {(cpu.get("physical id"), cpu.get("core id", cpu.get("processor"))) for cpu in cpus}
    memory = _memory_bytes(root, "MemTotal")
    numa_nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return {
        "cpu": first.get("model name") or platform.machine(),
        "architecture": platform.machine(),
        "sockets": len(sockets) or None,
        "cores": len(cores) or None,
        "threads": len(cpus) or os.cpu_count(),
        "threads_usable": len(usable_cpus()),
        "clock_most_mhz": clock_most_mhz(root),
        "caches_bytes": caches(root),
        "vector_flags": sorted(VECTOR_FLAGS & set(flags)),
        "memory_bytes": memory,
        "memory_gib": None if memory is None else round(memory / 2**30),
        "numa_nodes": len(numa_nodes) or None,
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
    """What may disturb a measurement at the moment."""
    ticks = cpu_ticks(root)
    return {
        "governor": _read(root / CPUS / "cpu0/cpufreq/scaling_governor"),
        "turbo": turbo(root),
        "smt_shared": smt_shared(root, usable_cpus()),
        "virtualised": is_virtualised(root),
        "steal_share": ticks[0] / ticks[1] if ticks and ticks[1] else None,
        "pressure_share": {name: pressure(root, name) for name in ("cpu", "io", "memory")},
        "load": load(root),
        "swap_used_bytes": swap_used_bytes(root),
        "memory_available_bytes": _memory_bytes(root, "MemAvailable"),
        "clock_source": source(root),
        "other_gpu_processes": gpu.other_processes(nvml),
    }


def usable_cpus() -> set[int]:
    # Affinity exists on Linux only. It is what a container or a batch system allows.
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def caches(root: Path = ROOT) -> dict[str, int] | None:
    """Bytes that one core sees, by name: `L1d`, `L1i`, `L2`, `L3`."""
    sizes = {}
    for index in sorted((root / CPUS / "cpu0/cache").glob("index[0-9]*")):
        level = _read(index / "level")
        cache_type = _read(index / "type")
        size = _read(index / "size")
        if level and cache_type and size:
            suffix = CACHE_SUFFIXES.get(cache_type, "")
            sizes[f"L{level}{suffix}"] = _parse_size(size)
    return sizes or None


def turbo(root: Path = ROOT) -> bool | None:
    """Whether the CPU may exceed its nominal clock: then speed depends on heat and other load."""
    no_turbo = _read(root / CPUS / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _read(root / CPUS / "cpufreq/boost")
    return None if boost is None else boost == "1"


def clock_most_mhz(root: Path = ROOT) -> float | None:
    """The highest clock of any CPU. Other drivers than these leave the turbo out."""
    driver = _read(root / CPUS / "cpu0/cpufreq/scaling_driver") or ""
    if driver not in TURBO_DRIVERS:
        return None
    paths = (root / CPUS).glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")
    clocks = [int(text) for path in paths if (text := _read(path) or "").isdecimal()]
    return max(clocks) / 1000 if clocks else None


def smt_shared(root: Path, usable: set[int]) -> bool | None:
    """Whether two of the usable CPUs share a core. None: the system does not report siblings."""
    paths = [root / CPUS / f"cpu{cpu}/topology/thread_siblings_list" for cpu in usable]
    lists = [text for path in paths if (text := _read(path)) is not None]
    if not lists:
        return None
    return any(len(_parse_cpu_list(text) & usable) > 1 for text in lists)


def is_virtualised(root: Path = ROOT) -> bool | None:
    cpus = _cpuinfo(root)
    if not cpus:
        return None
    return "hypervisor" in cpus[0].get("flags", "").split()


def pressure(root: Path, resource: str) -> float | None:
    """Share of the last ten seconds in which some task waited for the resource."""
    text = _read(root / "proc/pressure" / resource) or ""
    with suppress(IndexError, ValueError):
        percent = text.split("avg10=")[1].split()[0]
        return float(percent) / 100
    return None


def load(root: Path = ROOT) -> float | None:
    """Running and runnable tasks, averaged over the last minute."""
    text = _read(root / "proc/loadavg")
    return float(text.split()[0]) if text else None


def swap_used_bytes(root: Path = ROOT) -> int | None:
    total = _memory_bytes(root, "SwapTotal")
    free = _memory_bytes(root, "SwapFree")
    return None if total is None or free is None else total - free


def _cpuinfo(root: Path) -> list[dict[str, str]]:
    """The fields of each logical CPU."""
    text = _read(root / "proc/cpuinfo") or ""
    cpus = []
    for section in text.split("\n\n"):
        if "processor" in section:
            cpus.append(_parse_fields(section))
    return cpus


def _parse_fields(section: str) -> dict[str, str]:
    fields = {}
    for line in section.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    return fields


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


def _parse_size(size: str) -> int:
    """Bytes of `32K`, `1024K`, `16M`."""
    unit = SIZE_UNITS.get(size[-1])
    return int(size) if unit is None else unit * int(size[:-1])


def _parse_cpu_list(text: str) -> set[int]:
    """`0-2,5` is {0, 1, 2, 5}."""
    cpus: set[int] = set()
    for interval in text.split(","):
        first, _, last = interval.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
