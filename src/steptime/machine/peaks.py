"""`python -m steptime.machine.peaks [--no-peaks]`: tells what this machine is and the best it can do, as lines of JSON.

A worker of its own: like `steptime.worker` it may import frameworks, and whoever started it may not."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterable
from typing import IO, Any

from steptime import __version__, plugins
from steptime.core.errors import NotInstalled

SECONDS = {
    "cpu": 6.0,
    "cuda": 36.0,
}  # all peaks of one device; both within a minute, imports included


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what frameworks print is no answer

    from steptime.machine import inventory

    found = inventory.inventory()
    _tell(answers, {"part": "machine", **found})
    frameworks = _installed()
    versions = {"steptime": __version__, "python": platform.python_version()}
    for own in frameworks.values():
        versions |= own
    _tell(answers, {"part": "software", **versions})
    if "--no-peaks" not in sys.argv[1:]:
        # Of several GPUs the first: they are alike, and each takes its time.
        _measure(answers, frameworks, ["cpu", "cuda:0"] if found.get("gpus") else ["cpu"])


def _measure(answers: IO[str], frameworks: Iterable[str], devices: list[str]) -> None:
    """By the first framework that knows how."""
    able = [
        name for name in frameworks if importlib.util.find_spec(f"steptime.frameworks.{name}.peaks")
    ]
    for device in devices if able else []:
        seconds = SECONDS[device.partition(":")[0]]
        _tell(answers, {"part": "starts", "device": device, "seconds": seconds})
        found = importlib.import_module(f"steptime.frameworks.{able[0]}.peaks").measure_peaks(
            device, seconds
        )
        _tell(answers, {"part": "peaks", "device": device, "framework": able[0], "peaks": found})


def _installed() -> dict[str, dict[str, str]]:
    """Versions by framework. A folder can be imported where its framework cannot, so it is asked."""
    found = {}
    for name in plugins.names("frameworks"):
        with contextlib.suppress(ImportError, NotInstalled):
            found[name] = plugins.load("frameworks", name).versions()
    return found


def _tell(answers: IO[str], line: dict[str, Any]) -> None:
    print(json.dumps(line), file=answers, flush=True)


if __name__ == "__main__":
    main()
