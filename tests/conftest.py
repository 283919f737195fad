"""What several folders of tests share: a plug-in package of misbehaving frameworks, and a protocol for short runs."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steptime.core.protocol import Protocol

PLUGINS = Path(__file__).parent / "plugins"
MISBEHAVING = [
    "calm",
    "chatty",
    "segfault",
    "leaves",
    "hangs",
    "grows",
    "full",
    "fails",
    "prints",
    "killed",
    "parent",
    "selfish",
]


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """Whoever starts the tests in the background hands down that interrupts are ignored; then none can be tested."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def misbehaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the frameworks of `plugins` as if they were installed."""
    info = tmp_path / "site" / "misbehaving-1.dist-info"
    info.mkdir(parents=True)
    points = [f"{name} = misbehaving:{name}" for name in MISBEHAVING] + ["absent = absent"]
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(["[steptime.frameworks]", *points, ""]))
    folders = [str(info.parent), str(PLUGINS), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))


@pytest.fixture
def short() -> Protocol:
    """A tenth of a second per process: enough to go through everything, too short to say anything."""
    return Protocol(
        profile="quick",
        processes_least=2,
        processes_most=2,
        limit_seconds=60.0,
        block_seconds=0.01,
        least_steps=5,
        least_seconds=0.02,
        warmup_steps=10,
        warmup_seconds=0.02,
        warmup_most_seconds=0.1,
        pair_block_seconds=0.005,
    )


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Whether a process ends within a moment: the kernel takes its time with what was killed."""

    def wait(process: int) -> bool:
        try:
            file = os.pidfd_open(process)
        except ProcessLookupError:
            return True
        poll = select.poll()
        poll.register(file, select.POLLIN)
        gone = bool(poll.poll(2000))
        os.close(file)
        return gone

    return wait


@pytest.fixture
def workers(tmp_path: Path) -> Callable[[], list[int]]:
    """Process ids of the workers that write below this test's folder."""

    def find() -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue  # gone meanwhile
            if b"steptime.worker" in line and str(tmp_path).encode() in line:
                found.append(int(path.parent.name))
        return found

    return find


@pytest.fixture
def no_orphans(workers: Callable[[], list[int]], is_gone: Callable[[int], bool]) -> Iterator[None]:
    yield
    assert all(is_gone(process) for process in workers())
