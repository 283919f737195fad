"""Fixtures for several folders: misbehaving frameworks, a short protocol, fake attempts."""

from __future__ import annotations

import gzip
import hashlib
import os
import select
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from factories import make_attempt, make_record, make_times, write_journal
from fake_devices import FakeClock, FakeDevice, FakeNvml, HostProgram, spin
from steptime.core.protocol import Protocol
from steptime.core.record import Attempt, Record
from steptime.data.sets import mnist
from steptime.store.folder import FolderStore

SHARED = Path(__file__).parents[1] / ".." / "shared"
PLUGINS = Path(__file__).parent / "plugins"
MISBEHAVING = [
    "calm",
    "babbles",
    "chatty",
    "segfault",
    "leaves",
    "hangs",
    "grows",
    "hoards",
    "waits",
    "full",
    "fails",
    "prints",
    "killed",
    "parent",
    "emigrant",
    "selfish",
    "lies",
    "lame_second",
    "full_second",
    "killed_second",
    "gone_second",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a real PostgreSQL or Slurm, so that `make check` leaves them out."""
    for item in items:
        if {"database", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.service)


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """A shell that starts the tests in the background makes them ignore SIGINT, nohup SIGHUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def plug_ins() -> Callable[[Path, pytest.MonkeyPatch], None]:
    """Make workers find the frameworks of `plugins` as if they were installed."""

    def install(folder: Path, patch: pytest.MonkeyPatch) -> None:
        info = folder / "site" / "misbehaving-1.dist-info"
        info.mkdir(parents=True)
        points = [f"{name} = misbehaving:{name}" for name in MISBEHAVING] + ["absent = absent"]
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1\n")
        (info / "entry_points.txt").write_text("\n".join(["[steptime.frameworks]", *points, ""]))
        folders = [str(info.parent), str(PLUGINS), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))

    return install


@pytest.fixture
def misbehaving(
    plug_ins: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_ins(tmp_path, monkeypatch)


@pytest.fixture
def short() -> Protocol:
    """A tenth of a second per process: every stage runs, but the numbers mean nothing."""
    return Protocol(
        preset="quick",
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
    """Whether a process ends within two seconds: the kernel needs time after a kill."""

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
        processes = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue  # gone meanwhile
            if b"steptime.worker" in line and str(tmp_path).encode() in line:
                processes.append(int(path.parent.name))
        return processes

    return find


@pytest.fixture
def no_orphans(workers: Callable[[], list[int]], is_gone: Callable[[int], bool]) -> Iterator[None]:
    yield
    assert all(is_gone(process) for process in workers())


@pytest.fixture
def fakes() -> SimpleNamespace:
    """Fake devices and clocks by name."""
    return SimpleNamespace(
        Device=FakeDevice, Host=HostProgram, Nvml=FakeNvml, Clock=FakeClock, spin=spin
    )


@pytest.fixture(scope="session")
def write() -> Callable[[FolderStore, Attempt], str]:
    return write_journal


@pytest.fixture(scope="session")
def attempt_of() -> Callable[..., Attempt]:
    return make_attempt


@pytest.fixture(scope="session")
def times_of() -> Callable[..., np.ndarray]:
    return make_times


@pytest.fixture(scope="session")
def record_of() -> Callable[..., Record]:
    return make_record


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The complete data sets, if they lie beside the project."""
    folder = (SHARED / "data").resolve()
    if not (folder / "mnist").is_dir():
        pytest.skip("needs the real data sets in ../shared/data")
    monkeypatch.setenv("STEPTIME_DATA", str(folder))
    return folder


@pytest.fixture
def tiny_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with MNIST's files: 60 and 25 pictures that a network tells apart at once."""
    folder, sums = tmp_path / "sets", {}
    (folder / "MNIST").mkdir(parents=True)
    for prefix, count in (("train", 60), ("t10k", 25)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        pictures = np.zeros((count, 28, 28), np.uint8)
        pictures[np.arange(count), labels] = 255
        for name, values in (
            (f"{prefix}-images-idx3-ubyte.gz", pictures),
            (f"{prefix}-labels-idx1-ubyte.gz", labels),
        ):
            header = bytes((0, 0, 8, values.ndim)) + np.array(values.shape, ">u4").tobytes()
            content = gzip.compress(header + values.tobytes())
            (folder / "MNIST" / name).write_bytes(content)
            sums[name] = (hashlib.sha256(content).hexdigest(),)
    monkeypatch.setattr(mnist, "SET", replace(mnist.SET, files=sums))
    monkeypatch.setenv("STEPTIME_DATA", str(folder))
    return folder
