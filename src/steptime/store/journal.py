"""Write one attempt as one append-only file that survives any crash.

The end line also takes in what a monitor wrote beside the journal (`monitor_log`)."""

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
from typing import Any, Protocol
from uuid import UUID

from steptime.core import accuracy
from steptime.core.errors import SteptimeError
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.core.record import Failure
from steptime.core.record_schema import SENTENCE, line_problem
from steptime.core.secrets import redact, redact_environment, secret_values
from steptime.store import checksums, monitor_log
from steptime.store.atomic import explain_write_errors, fsync
from steptime.store.files import open_file, read_bytes
from steptime.store.permissions import open_private
from steptime.store.versions import JOURNAL_SCHEMA


def uuid7() -> str:
    """An id that sorts by time (RFC 9562, method 3).

    It has 48 bits of milliseconds, 12 of their fraction and 62 random ones."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    high = milliseconds << 80 | 7 << 76 | fraction << 64
    low = 2 << 62 | secrets.randbits(62)
    return str(UUID(int=high | low))


def age_order(identifier: str) -> tuple[bool, str]:
    """A key that sorts ids by their time, those from the future first.

    A clock that was once ahead must not make its sessions the newest for ever."""
    return identifier <= uuid7(), identifier


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class InvalidRecord(SteptimeError):
    """A line that no reader would take: the schema of records does not allow it."""


class Sink(Protocol):
    """What a task writes to. Each task ends its attempt by calling one of the two."""

    def write_measurement(
        self, measurement: Measurement, findings: dict[str, Any] | None = None
    ) -> None: ...

    def write_findings(self, findings: dict[str, Any]) -> None: ...


class NullJournal:
    """Writes nothing. Used by every rank but the first, because rank 0 writes for all."""

    def __enter__(self) -> NullJournal:
        return self

    def __exit__(self, *_: object) -> None: ...

    def begin(self, job: Job) -> None: ...

    def write_context(
        self,
        *,
        machine: dict[str, Any],
        software: dict[str, Any],
        network: dict[str, Any],
        program: str = "",
    ) -> None: ...

    def write_measurement(
        self, measurement: Measurement, findings: dict[str, Any] | None = None
    ) -> None: ...

    def write_findings(self, findings: dict[str, Any]) -> None: ...

    def write_failure(self, failure: Failure) -> None: ...


class Journal:
    """The writer of one attempt.

    It holds a lock on its file while it lives, which tells a running attempt from a dead one."""

    def __init__(self, path: Path, *, exists: bool = False) -> None:
        flags = os.O_WRONLY | os.O_APPEND
        if not exists:
            flags |= os.O_CREAT | os.O_EXCL
        with explain_write_errors(f"The journal {path}"):
            self._file = open_private(path, flags)
        self.path = path
        self._precision = "fp32"
        # Of the last line. None: this journal was begun by a version without checksums.
        self._checksum: str | None = ""
        if exists:
            self._checksum = checksums.last_checksum(read_bytes(path).split(b"\n"))
        # A framework may print what it was given, so values are known as secrets everywhere.
        self._secrets = secret_values(os.environ)
        os.lseek(self._file, 0, os.SEEK_END)
        if not exists:
            # On a file system without locks a running attempt looks dead for a while.
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_EX)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def begin(self, job: Job) -> None:
        self._precision = job.case.precision
        line = {"line": "begin", "schema": JOURNAL_SCHEMA, **job.to_dict()}
        del line["turns"]
        line["environment"] = redact_environment(job.environment, self._secrets)
        line["options"] = redact(job.options, self._secrets)
        line["started"] = now()
        line["pid"] = os.getpid()
        self._append([line])
        with explain_write_errors(f"The journal {self.path}"):
            # The name of the file must survive a crash, too.
            fsync(self.path.parent)

    def write_context(
        self,
        *,
        machine: dict[str, Any],
        software: dict[str, Any],
        network: dict[str, Any],
        program: str = "",
    ) -> None:
        line = {"line": "context", "machine": machine, "software": software, "network": network}
        line["program"] = program
        self._append([redact(line, self._secrets)], sync=False)

    def write_measurement(
        self, measurement: Measurement, findings: dict[str, Any] | None = None
    ) -> None:
        """End a task that timed steps. The result is safe on the disk when this returns.

        A low precision is refused without its accuracy loss."""
        findings = findings or {}
        if lacking := accuracy.explain_missing_accuracy(self._precision, findings):
            raise accuracy.NoAccuracy(lacking)
        facts = measurement.to_dict()
        # These go into the sample lines.
        for name in ("stamps", "device_ns", "blocks"):
            facts.pop(name, None)
        facts["first"] = measurement.stamps[0]
        facts["samples"] = len(measurement.stamps) - 1
        end = self._end_line(findings, measurement=facts)
        self._append([*_sample_lines(measurement), end])

    def write_findings(self, findings: dict[str, Any]) -> None:
        """End a task that times nothing."""
        self._append([self._end_line(findings)])

    def write_failure(self, failure: Failure) -> None:
        texts = {}
        for name, text in failure.to_dict().items():
            # What went wrong must be stored, however long the sentence is.
            texts[name] = text[: SENTENCE.most]
        self._append([self._end_line({}, failure=texts)])

    def _end_line(
        self,
        findings: dict[str, Any],
        measurement: dict[str, Any] | None = None,
        failure: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        series = monitor_log.read_series(self.path)
        if series:
            findings = findings | {"monitor": series}
        return {
            "line": "end",
            "ended": now(),
            "measurement": measurement,
            "findings": redact(findings, self._secrets),
            "failure": redact(failure, self._secrets),
        }

    def end_torn_line(self) -> None:
        """Terminate a line that its writer could not finish."""
        with explain_write_errors(f"The journal {self.path}"):
            os.write(self._file, b"\n")

    def _append(self, lines: list[dict[str, Any]], *, sync: bool = True) -> None:
        data, checksum = self._encode(lines)
        size = os.fstat(self._file).st_size
        with explain_write_errors(f"The journal {self.path}"):
            try:
                while data:
                    written = os.write(self._file, data)
                    data = data[written:]
                if sync:
                    os.fsync(self._file)
            except OSError:
                # A full disk leaves half a line. Removing it makes room to write the failure.
                os.ftruncate(self._file, size)
                os.lseek(self._file, size, os.SEEK_SET)
                raise
        self._checksum = checksum

    def _encode(self, lines: list[dict[str, Any]]) -> tuple[bytes, str | None]:
        """The bytes of these lines, and the checksum of the last one."""
        checksum = self._checksum
        encoded = []
        for values in lines:
            text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
            line = text.encode(errors="replace")
            # As a reader sees it: numbers and tuples become what JSON has.
            if problem := line_problem(json.loads(line)):
                raise InvalidRecord(f"This cannot be stored: {problem}.")
            if checksum is not None:
                line, checksum = checksums.seal(line, checksum)
            encoded.append(line + b"\n")
        return b"".join(encoded), checksum


def close_failed(path: Path, job: Job, failure: Failure) -> None:
    """End the journal of a worker that is gone and wrote no end line."""
    exists = path.exists()
    with Journal(path, exists=exists) as journal:
        text = read_bytes(path) if exists else b""
        if text and not text.endswith(b"\n"):
            journal.end_torn_line()
        if b"\n" not in text:
            journal.begin(job)
        journal.write_failure(failure)


def is_running(path: Path) -> bool:
    """Whether the writer still lives, judged by its lock. Ask only for a journal without an end."""
    with open_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def _sample_lines(measurement: Measurement) -> Iterator[dict[str, Any]]:
    """One line per block. Stamps become differences, which compress and are readable."""
    deltas = [end - begin for begin, end in pairwise(measurement.stamps)]
    first = 0
    for block in measurement.to_dict()["blocks"]:
        last = first + block["samples"]
        device = None
        if measurement.device_ns is not None:
            device = list(measurement.device_ns[first:last])
        yield {"line": "sample", **block, "deltas": deltas[first:last], "device_ns": device}
        first = last
    assert first == len(deltas), "blocks must tile the samples"
