"""`python -m steptime.machine.peaks [--no-peaks]`: report this machine and its peaks as JSON lines.

A separate process: like `steptime.worker` it imports frameworks, which its parent must not."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import IO, Any

from steptime import __version__, plugins
from steptime.core.errors import NotInstalled
from steptime.engine import gpu
from steptime.machine.inventory import inventory, usable_cpus
from steptime.machine.pressure import idle_pressure, watch_pressure

# For all peaks of one device. Both together, with imports, take less than a minute.
SECONDS = {"cpu": 6.0, "cuda": 36.0}
# Of a device that something else uses.
TRIES = 3
RETRY_SECONDS = 5.0


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # What frameworks print must not mix with the answers.
    os.dup2(2, 1)

    machine = inventory()
    _send(answers, {"part": "machine", **machine})
    framework_versions = _framework_versions()
    versions = {"steptime": __version__, "python": platform.python_version()}
    for package_versions in framework_versions.values():
        versions |= package_versions
    _send(answers, {"part": "software", **versions})
    if "--no-peaks" not in sys.argv[1:]:
        # Only the first of several GPUs: they are alike, and each one takes time.
        devices = ["cpu", "cuda:0"] if machine.get("gpus") else ["cpu"]
        _measure(answers, framework_versions, devices)


def _measure(answers: IO[str], frameworks: Iterable[str], devices: list[str]) -> None:
    """With the first framework that has a `peaks` module."""
    framework = _find_framework_with_peaks(frameworks)
    if framework is None:
        return
    module = importlib.import_module(f"steptime.frameworks.{framework}.peaks")
    nvml = gpu.open_nvml()
    for device in devices:
        seconds = SECONDS[device.partition(":")[0]]
        _send(answers, {"part": "starts", "device": device, "seconds": seconds})
        measured = measure_unpressed(device, partial(module.measure_peaks, device, seconds), nvml)
        _send(answers, {"device": device, "framework": framework, **measured})


def measure_unpressed(
    device: str, measure_peaks: Callable[[], dict[str, Any]], nvml: Any = None
) -> dict[str, Any]:
    """The peaks, or why there are none: something else used the device in every try."""
    reasons: list[str] = []
    used = False
    for attempt in range(TRIES):
        if attempt:
            time.sleep(RETRY_SECONDS)
        if device != "cpu" and not used:
            reasons = idle_pressure(device, nvml).reasons
            if reasons:
                continue
        used = True
        with watch_pressure(device, nvml) as watch:
            peaks = measure_peaks()
        reasons = watch.pressure.reasons
        if not reasons:
            return {
                "part": "peaks",
                "peaks": peaks,
                "threads": len(usable_cpus()),
                "pressure": watch.pressure.to_dict(),
                "measured": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            }
    return {"part": "refused", "tries": TRIES, "reason": " and ".join(reasons)}


def _find_framework_with_peaks(frameworks: Iterable[str]) -> str | None:
    for name in frameworks:
        if importlib.util.find_spec(f"steptime.frameworks.{name}.peaks"):
            return name
    return None


def _framework_versions() -> dict[str, dict[str, str]]:
    """Of every framework that is installed."""
    versions = {}
    for name in plugins.names("frameworks"):
        # A plugin's folder can be imported even if its framework cannot, so ask for versions.
        with contextlib.suppress(ImportError, NotInstalled):
            versions[name] = plugins.load("frameworks", name).versions()
    return versions


def _send(answers: IO[str], line: dict[str, Any]) -> None:
    print(json.dumps(line), file=answers, flush=True)


if __name__ == "__main__":
    main()
