"""Raw samples as a table, one line each. Lines are written as they are read: there may be millions.

The columns are fixed, so that a script can rely on them. A new one is a new version of the
schema."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Iterable, Iterator
from itertools import accumulate, repeat
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, BinaryIO, NamedTuple, cast

from steptime.analysis.process import measured_processes
from steptime.analysis.stopping import set_aside
from steptime.core.errors import SteptimeError
from steptime.core.record import Attempt, Record
from steptime.index.table import duckdb

SCHEMA = "steptime-samples/1"
Line = tuple[Any, ...]


class Column(NamedTuple):
    type: str  # in Parquet
    unit: str = ""


COLUMNS = {
    "result": Column("VARCHAR"),
    "session": Column("VARCHAR"),
    "case": Column("VARCHAR"),
    "attempt": Column("VARCHAR"),
    "process": Column("INTEGER"),
    "status": Column("VARCHAR"),
    "set_aside": Column("VARCHAR"),
    "sample": Column("BIGINT"),
    "start": Column("BIGINT", "ns"),
    "host_time": Column("BIGINT", "ns"),
    "device_time": Column("BIGINT", "ns"),
    "steps": Column("INTEGER", "count"),
    "warmup": Column("BOOLEAN"),
}


def sample_lines(result: str, record: Record) -> Iterator[Line]:
    """The samples of all attempts, those of failed ones with the cause as status."""
    reasons = set_aside(measured_processes(record.attempts))
    for attempt in record.attempts:
        head = (
            result,
            attempt.session,
            attempt.case.key,
            attempt.id,
            attempt.process,
            attempt.failure.cause.value if attempt.failure else "ok",
            reasons.get(attempt.id),
        )
        for sample in _samples(attempt):
            yield head + sample


def _samples(attempt: Attempt) -> Iterator[Line]:
    samples = attempt.unused_samples
    if attempt.measurement is not None:
        samples = attempt.measurement.raw_samples
    if samples is None:
        return
    starts = accumulate(samples.host_ns, initial=0)
    device_ns = repeat(None) if samples.device_ns is None else samples.device_ns
    times = zip(starts, samples.host_ns, device_ns, strict=False)
    for number, (start, host, device) in enumerate(times):
        warmup = None
        if samples.cut is not None:
            # As CSV and DuckDB write it.
            warmup = "true" if number < samples.cut else "false"
        yield number, start, host, device, samples.group, warmup


def write_csv(lines: Iterable[Line], stream: BinaryIO) -> int:
    """Returns how many lines there are. Without any, nothing is written: not even the header."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    table = csv.writer(text, lineterminator="\n")
    count = 0
    try:
        for count, line in enumerate(lines, 1):
            if count == 1:
                table.writerow(_titles())
            table.writerow(line)
    finally:
        # The stream is the caller's: it must stay open.
        text.detach()
    return count


def _titles() -> list[str]:
    return [f"{name} [{unit}]" if unit else name for name, (_, unit) in COLUMNS.items()]


def write_parquet(lines: Iterable[Line], stream: BinaryIO) -> int:
    """Through a packed table on the disk, because DuckDB takes single lines slowly."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "samples.csv.gz"
        target = Path(folder) / "samples.parquet"
        try:
            with gzip.open(source, "wb", compresslevel=1) as table:
                count = write_csv(lines, cast(BinaryIO, table))
            if count:
                _convert(source, target)
        except (OSError, duckdb().Error) as problem:
            reason = str(problem).partition("\n")[0]
            raise SteptimeError(
                f"The samples cannot be gathered in {gettempdir()}: {reason}. "
                "Make room there, or name another folder with TMPDIR."
            ) from problem
        if count:
            with target.open("rb") as parquet:
                shutil.copyfileobj(parquet, stream)
    return count


def _convert(source: Path, target: Path) -> None:
    types = ", ".join(f"'{name}': '{type_}'" for name, (type_, _) in COLUMNS.items())
    units = json.dumps({name: unit for name, (_, unit) in COLUMNS.items() if unit})
    with duckdb().connect() as database:
        database.execute(
            f"""
            COPY (SELECT * FROM read_csv(
                ?, header = true, delim = ',', quote = '"', escape = '"', columns = {{{types}}}
            ))
            TO '{target}' (
                FORMAT parquet, COMPRESSION zstd,
                KV_METADATA {{schema: '{SCHEMA}', units: '{units}'}}
            )
            """,
            [str(source)],
        )


# Formats that hold samples, each with its writer.
WRITERS = {"csv": write_csv, "parquet": write_parquet}
