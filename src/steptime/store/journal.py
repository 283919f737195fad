"""One attempt, one file, append only: what is written here survives any crash. Of other files it knows one: what a
monitor saw meanwhile goes into the end line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

from steptime.core import accuracy
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.record import Failure
from steptime.store import monitor_log

SCHEMA = "steptime/1"


class NotWritten(SteptimeError):
    """The disk is full, read-only or gone."""


def uuid7() -> str:
    """Sorts by time: 48 bits of milliseconds, 12 of their fraction, 62 random (RFC 9562, method 3)."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    return str(
        UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | secrets.randbits(62))
    )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Journal:
    """The writer. Holds a lock on its file while it lives: that tells a running attempt from a dead one."""

    def __init__(self, path: Path, *, exists: bool = False) -> None:
        with written(f"The journal {path}"):
            self._file = os.open(
                path, os.O_WRONLY | os.O_APPEND | (0 if exists else os.O_CREAT | os.O_EXCL), 0o644
            )
        self.path = path
        self._precision = "fp32"
        os.lseek(self._file, 0, os.SEEK_END)
        if not exists:
            with contextlib.suppress(
                OSError
            ):  # a file system without locks: a running attempt looks dead for a while
                fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def begin(self, job: Job) -> None:
        self._precision = job.case.precision
        values = {name: value for name, value in job.to_dict().items() if name != "turns"}
        self._append(
            [{"line": "begin", "schema": SCHEMA, **values, "started": now(), "pid": os.getpid()}]
        )
        with written(f"The journal {self.path}"):
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)  # the name of the file, too, must survive
            os.close(folder)

    def context(
        self, *, machine: dict[str, Any], software: dict[str, Any], network: dict[str, Any]
    ) -> None:
        self._append(
            [{"line": "context", "machine": machine, "software": software, "network": network}],
            sync=False,
        )

    def measured(self, measurement: Measurement, findings: dict[str, Any] | None = None) -> None:
        """When this returns the result is safe on the disk. A low precision is only written down with its price."""
        if lacking := accuracy.lacking(self._precision, findings or {}):
            raise accuracy.NoAccuracy(lacking)
        rest = {
            k: v
            for k, v in measurement.to_dict().items()
            if k not in ("stamps", "device_ns", "blocks")
        }
        rest |= {"first": measurement.stamps[0], "samples": len(measurement.stamps) - 1}
        self._append([*_samples(measurement), self._end(findings or {}, measurement=rest)])

    def found(self, findings: dict[str, Any]) -> None:
        """The end of a task that times nothing."""
        self._append([self._end(findings)])

    def failed(self, failure: Failure) -> None:
        values = {"cause": failure.cause, "reason": failure.reason, "output": failure.output}
        self._append([self._end({}, failure=values)])

    def _end(self, findings: dict[str, Any], **values: Any) -> dict[str, Any]:
        beside = monitor_log.series(self.path)
        found = {**findings, **({"monitor": beside} if beside else {})}
        return {
            "line": "end",
            "ended": now(),
            "measurement": None,
            "findings": found,
            "failure": None,
            **values,
        }

    def new_line(self) -> None:
        """Ends a line that its writer could not finish."""
        with written(f"The journal {self.path}"):
            os.write(self._file, b"\n")

    def _append(self, lines: list[dict[str, Any]], *, sync: bool = True) -> None:
        text = "".join(
            json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines
        )
        rest, size = text.encode(errors="replace"), os.fstat(self._file).st_size
        with written(f"The journal {self.path}"):
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                if sync:
                    os.fsync(self._file)
            except OSError:
                # A full disk leaves half a line: taking it back also makes room to say so.
                os.ftruncate(self._file, size)
                os.lseek(self._file, size, os.SEEK_SET)
                raise


def close_failed(path: Path, job: Job, failure: Failure) -> None:
    """For a worker that left no end line, after it is gone."""
    exists = path.exists()
    with Journal(path, exists=exists) as journal:
        text = path.read_bytes() if exists else b""
        if text and not text.endswith(b"\n"):
            journal.new_line()
        if b"\n" not in text:
            journal.begin(job)
        journal.failed(failure)


def is_running(path: Path) -> bool:
    """Whether its writer still lives, seen by the lock; only asked for a journal without an end."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def _samples(measurement: Measurement) -> Iterator[dict[str, Any]]:
    """One line per block; its stamps as differences, which is what compresses and what people read."""
    deltas = [b - a for a, b in pairwise(measurement.stamps)]
    first = 0
    for block in measurement.to_dict()["blocks"]:
        last = first + block["samples"]
        device = None if measurement.device_ns is None else list(measurement.device_ns[first:last])
        yield {"line": "sample", **block, "deltas": deltas[first:last], "device_ns": device}
        first = last
    assert first == len(deltas), "blocks must tile the samples"


SAFE = "Finished results are safe; make room or choose another folder with --store, and run again to continue."


@contextlib.contextmanager
def written(what: str, advice: str = SAFE) -> Iterator[None]:
    """A disk that refuses is told as a sentence."""
    try:
        yield
    except OSError as problem:
        raise NotWritten(f"{what} cannot be written: {problem.strerror}. {advice}") from problem
