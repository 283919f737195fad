"""The command as a user meets it: a process with arguments, output and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime import formats
from steptime.formats import Original
from steptime.store.imports import Imports

Command = Callable[..., "subprocess.CompletedProcess[str]"]
SHORT = {
    "processes_least": 2, "processes_most": 2, "block_seconds": 0.01, "least_steps": 5, "least_seconds": 0.02,
    "warmup_steps": 10, "warmup_seconds": 0.02, "warmup_most_seconds": 0.1, "pair_block_seconds": 0.005,
    "pair_looks": 1, "pair_blocks": 2,
}  # fmt: skip


@pytest.fixture
def steptime(tmp_path: Path) -> Command:
    """Runs in an empty folder, so that `results` is this test's own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            name: value for name, value in os.environ.items() if name != "STEPTIME_STORE"
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", "steptime", *arguments],
            capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[str, str], None]:
    """Takes a foreign file into this test's store, as `steptime import` does, in a tenth of its time."""

    def take(name: str, text: str) -> None:
        original = Original(name, text.encode(), name)
        with Imports(tmp_path / "results") as imports:
            imports.keep(original.sha256, original.data, formats.read(original).runs)

    return take


@pytest.fixture
def short_flags() -> list[str]:
    """A protocol that goes through everything and is too short to say anything."""
    return [word for name, value in SHORT.items() for word in ("--set", f"protocol.{name}={value}")]


@pytest.fixture
def short_words() -> str:
    return ",".join(f"protocol.{name}={value}" for name, value in SHORT.items())
