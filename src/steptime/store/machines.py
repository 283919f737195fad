"""Measured peaks on disk: one JSON file per machine, named after its fingerprint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steptime.store.atomic import atomic_write, explain_write_errors
from steptime.store.files import read_text

# Below a store's folder.
FOLDER = "machines"
PATTERN = f"{FOLDER}/*.json"


def machine_path(store: Path, fingerprint: object) -> Path:
    return store / FOLDER / f"{fingerprint}.json"


def write_machine(store: Path, facts: Mapping[str, Any]) -> Path:
    """Keep a machine's peaks. They replace older ones of the same devices."""
    fingerprint = facts["machine"].get("fingerprint")
    path = machine_path(store, fingerprint)
    facts = {**facts, "peaks": {**read_peaks(store, fingerprint), **facts["peaks"]}}
    explained = explain_write_errors(f"The file of peaks {path}", "Choose another --store.")
    with explained, atomic_write(path, sync=False) as draft:
        draft.write_text(json.dumps(facts, indent=2))
    return path


def read_machines(store: Path, problems: list[str]) -> list[dict[str, Any]]:
    """All machines whose peaks were measured, each with its fingerprint."""
    machines = []
    for path in sorted(store.glob(PATTERN)):
        try:
            machines.append({"fingerprint": path.stem, **_read_machine(path)})
        except (OSError, ValueError, TypeError, RecursionError):
            problems.append(f"{path}: not readable; it is left as it is.")
    return machines


def _read_machine(path: Path) -> dict[str, Any]:
    """Raises ValueError if the file holds something else."""
    facts = json.loads(read_text(path))
    if not isinstance(facts, dict):
        raise ValueError(f"{path} holds no table")
    for name in ("machine", "peaks"):
        if not isinstance(facts.get(name, {}), dict):
            raise ValueError(f"{name} is no table")
    if not all(isinstance(device, dict) for device in facts.get("peaks", {}).values()):
        raise ValueError("a device is no table")
    return facts


def read_peaks(store: Path, fingerprint: object) -> dict[str, Any]:
    """What is stored of each device of this machine. Empty: not measured."""
    try:
        peaks: dict[str, Any] = _read_machine(machine_path(store, fingerprint)).get("peaks", {})
    except (OSError, ValueError, RecursionError):
        return {}
    return peaks


def stored_peak(store: Path, fingerprint: object, device: str, precision: str) -> float | None:
    """The FLOP/s that this machine reached in this precision. None: not measured."""
    machine = {"peaks": read_peaks(store, fingerprint)}
    return _flop_rates(machine, device).get(precision)


def limits_by_machine(store: Path, device: str) -> dict[str, dict[str, Any]]:
    """FLOP/s of this kind of device by fingerprint and device, with the CPU threads used.

    A worker picks its own machine and records its peaks beside the measurement."""
    limits: dict[str, dict[str, Any]] = {}
    for machine in read_machines(store, []):
        for name in read_peaks(store, machine["fingerprint"]):
            rates = _flop_rates(machine, name)
            if rates and name.partition(":")[0] == device.partition(":")[0]:
                measured = {"flops_per_second": rates, "threads": _threads(machine, name)}
                limits.setdefault(machine["fingerprint"], {})[name] = measured
    return limits


def _threads(machine: Mapping[str, Any], device: str) -> int | None:
    """Hardware threads that the peaks were measured with."""
    threads: int | None = machine["peaks"][device].get("threads")
    return threads or (machine.get("machine") or {}).get("threads_usable")


def newest_peaks(store: Path) -> dict[str, dict[str, float]]:
    """FLOP/s by device and precision of the machine that was measured last."""
    try:
        path = max(store.glob(PATTERN), key=lambda path: path.stat().st_mtime)
        machine = _read_machine(path)
    except (OSError, ValueError, RecursionError):
        # No machine was measured, or its file is not readable.
        return {}
    return {device: _flop_rates(machine, device) for device in machine.get("peaks", {})}


def peak_rates(machine: Mapping[str, Any], device: str) -> dict[str, float]:
    """FLOP/s by precision, and the bytes/s of a copy. Empty: not measured."""
    rates = {}
    for name, peak in _peaks(machine, device).items():
        rate = peak.get("flops_per_second") or peak.get("bytes_per_second")
        if isinstance(rate, int | float):
            rates[name] = float(rate)
    return rates


def _flop_rates(machine: Mapping[str, Any], device: str) -> dict[str, float]:
    rates = {}
    for name, peak in _peaks(machine, device).items():
        rate = peak.get("flops_per_second")
        if isinstance(rate, int | float):
            rates[name] = float(rate)
    return rates


def _peaks(machine: Mapping[str, Any], device: str) -> dict[str, dict[str, Any]]:
    """The measured peaks of one device by name; empty if the file has another shape."""
    try:
        peaks = machine["peaks"][device]["peaks"]
        return {name: peak for name, peak in peaks.items() if isinstance(peak, dict)}
    except (KeyError, TypeError, AttributeError):
        return {}
