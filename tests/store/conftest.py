"""Small jobs and measurements, made by hand."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steptime.core.accuracy import COUNTS, ERRORS
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.job import Job
from steptime.core.measurement import Block, Measurement, RankSamples
from steptime.core.protocol import Protocol
from steptime.core.record import Failure
from steptime.store.folder import FolderStore
from steptime.store.journal import Journal, uuid7


@pytest.fixture
def make_job() -> Callable[..., Job]:
    def make(**settings: object) -> Job:
        values = {
            "id": uuid7(),
            "session": "s1",
            "plan": "p1",
            "process": 0,
            "case": Case(workload="mnist-mlp", exchange="independent", devices=2),
        }
        return Job(**{**values, "protocol": Protocol(), **settings})  # type: ignore[arg-type]

    return make


@pytest.fixture
def measurement() -> Measurement:
    def block(samples: int, host_ns: int) -> Block:
        counts = {
            "cpu_ns": 7,
            "faults": 1,
            "major_faults": 0,
            "switches": 2,
            "involuntary_switches": 0,
        }
        return Block(samples=samples, host_ns=host_ns, dispatch_ns=host_ns - 5, **counts)

    def rank(number: int, offset_ns: int) -> RankSamples:
        times = {"stamps": (90, 105, 121, 130, 149), "device_ns": (9, 14, 5, 18), "idle_ns": (0, 3)}
        seen = {"cpu_ns": 7, "queue_ns": None, "cut": 1, "steady": True, "threads": 2}
        return RankSamples(
            rank=number, node="n0", **times, **seen, offset_ns=(offset_ns, -5), offset_error_ns=4
        )

    return Measurement(
        group=1,
        stamps=(100, 110, 125, 131, 150),
        device_ns=(9, 14, 5, 18),
        blocks=(block(3, 31), block(1, 19)),
        cut=1,
        steady=True,
        clock={"cost_ns": 50},
        starts={"import": 0.5},
        facts={"word": "Größe"},
        ranks=(rank(0, 0), rank(1, 1 << 40)),
    )


@pytest.fixture
def accuracy_loss() -> dict[str, Any]:
    """The complete accuracy loss that a low precision must report."""
    found = {name: 0.5 for name in (*COUNTS, *ERRORS)} | {
        "samples": 8,
        "positions": 8,
        "broken_positions": 0,
    }
    return {**found, "reference": "fp32, numpy eager", "data": "synthetic", "task": None}


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "results")


@pytest.fixture
def keep(store: FolderStore, measurement: Measurement) -> Callable[[Job], Path]:
    """Write a complete attempt into the store."""

    def write(job: Job) -> Path:
        path = store.journal(job.id)
        with Journal(path) as journal:
            journal.begin(job)
            journal.write_context(
                machine={"cpu": "x"}, software={"python": "3"}, network={"fingerprint": "f"}
            )
            journal.write_measurement(measurement)
        return path

    return write


@pytest.fixture
def outcomes(
    store: FolderStore, make_job: Callable[..., Job], keep: Callable[[Job], Path]
) -> FolderStore:
    """A store with a measurement, findings and a failure."""
    keep(make_job())
    job = make_job(task="certify")
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_findings({"items": [1, 2]})
    job = make_job()
    with Journal(store.journal(job.id)) as journal:
        journal.begin(job)
        journal.write_failure(
            Failure(cause=Cause.CRASHED, reason="It was killed.", output="last words")
        )
    return store


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    """The folder of a real PostgreSQL's socket. Root starts it as another user, as it demands."""
    if not shutil.which("initdb") or not shutil.which("postgres"):
        pytest.skip("needs PostgreSQL: initdb and postgres on the PATH")
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30
    # Not pytest's folder: a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="steptime-pg-", dir=memory if roomy else None))
    somebody = _drop_root(folder)

    make = [
        "initdb",
        "-D",
        "data",
        "-U",
        "test",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        "--no-instructions",
    ]
    subprocess.run(make, cwd=folder, check=True, stdout=subprocess.DEVNULL, **somebody)
    quick = "fsync=off\nsynchronous_commit=off\nfull_page_writes=off\nshared_buffers=32MB\n"
    with (folder / "data" / "postgresql.conf").open("a") as file:
        file.write(f"listen_addresses=''\nunix_socket_directories='{folder}'\n{quick}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["postgres", "-D", "data"], cwd=folder, stdout=log, stderr=log, **somebody
        )
    _wait_for(folder, process)
    yield folder
    process.send_signal(signal.SIGQUIT)  # at once: nobody needs these data any more
    process.wait(30)
    shutil.rmtree(folder)


def _drop_root(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    names = {one.pw_name: one for one in pwd.getpwall()}
    somebody = names.get("postgres") or names.get("nobody")
    if somebody is None:
        pytest.skip("PostgreSQL refuses root, and there is no user postgres or nobody")
    os.chown(folder, somebody.pw_uid, somebody.pw_gid)
    return {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []}


def _wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    while True:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            psycopg.connect(host=str(folder), user="test", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.02)  # it is still starting


@pytest.fixture
def database(server: Path) -> Iterator[str]:
    """The address of an empty database."""
    import psycopg

    name = f"test_{uuid7().replace('-', '')}"
    with psycopg.connect(
        host=str(server), user="test", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://test@/{name}?host={server}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
