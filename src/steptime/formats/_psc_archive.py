"""A campaign as PSC's results folder has it: a file for each run, the table, and bar charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.charts import chart
from steptime.charts.draw import draw
from steptime.core.record import Record
from steptime.formats import Skipped, psc
from steptime.formats._writer import BESIDE, Page
from steptime.index import rows
from steptime.index.index import Index
from steptime.index.query import Query

Row = dict[str, Any]
# The title in a log, the name in a row, and the unit after the number.
NUMBERS = (
    ("Mean Time Per Step", "mean_time", ""),
    ("Mean Speed", "mean_speed", " Images/Sec"),
    ("speed uncertainty", "speed_uncertainty", ""),
    ("Speed Jitter", "jitter", ""),
)


def pages(records: Sequence[Record]) -> Iterator[Page | Skipped]:
    """As in PSC's folder, a failure has its file and no line in the table."""
    fit = []
    for record in records:
        row = _row(record)
        # A failure has no speed, and still gets its file.
        reason = psc.unfit_reason({"mean_speed": 1.0, **row})
        if reason:
            yield Skipped(row["id"], reason)
        else:
            fit.append(row)
    for name, row in _rows_by_name(fit).items():
        yield Page(name, _log(row).encode(), (row["id"],))
    measured = [row for row in fit if row["status"] == "ok"]
    for page in psc.write(measured):
        if isinstance(page, Page):
            yield page
    yield from _charts(measured)


def _row(record: Record) -> Row:
    """The record's row of the index, with what PSC's files hold beyond the catalogue."""
    row = rows.make_row(record)
    row["hardware"] = rows.hardware(record)
    slurm = record.last.environment.get("slurm", {})
    row["failure"] = ""
    if not record.measurements:
        failure = record.failures[-1]
        row["failure"] = f"{failure.cause}: {failure.reason}"
    # One word for a file name; the catalogue has the full name of the device.
    row["device"] = record.case.node_type or record.case.device
    row["data"] = record.case.staging or row["data"]
    row["more"] = {
        "job": slurm.get("SLURM_JOB_ID", ""),
        "partition": slurm.get("SLURM_JOB_PARTITION", ""),
    }
    return row


def _rows_by_name(runs: Sequence[Row]) -> dict[str, Row]:
    """YYYY-MM-DD-<gpu type>:<number of gpus>:<staged from>.

    The batch is in between if runs differ in it alone."""
    counts = Counter(_name(row) for row in runs)
    by_name: dict[str, Row] = {}
    for row in runs:
        name = _name(row, with_batch=counts[_name(row)] > 1)
        unique = name
        number = 2
        while unique in by_name:
            unique = f"{name}.{number}"
            number += 1
        by_name[unique] = row
    return by_name


def _name(row: Row, *, with_batch: bool = False) -> str:
    fields = [row["device"], row["devices"], row["data"]]
    if with_batch:
        fields.insert(2, row["effective_batch"])
    return f"{row['started'][:10]}-{':'.join(map(str, fields))}"


def _log(row: Row) -> str:
    """Only lines that PSC's scripts, or ours, look for."""
    job = row["more"]["job"]
    lines = [
        f"DeepMNIST by {row['software']}: {row['phase']}, measured by steptime as {row['id']}",
        f"+ scontrol show jobid={job}",
        f"JobId={job} JobName=steptime",
        f"   StartTime={row['started']}",
        f"   Partition={row['more']['partition']}",
        f"   NodeList={row['server']}",
        f"   NumNodes={row['nodes']} NumCPUs={row['threads']}",
    ]
    if row["hardware"]["accelerators"]:
        lines.append(f"   Gres=gpu:{row['device']}:{row['devices']}")
    lines.append(f"batch_size={row['effective_batch']}")
    if row["failure"]:
        lines.append(f"failed, {row['failure']}")
    else:
        lines += [f"{title} : {row[name]}{unit}" for title, name, unit in NUMBERS]
    return "\n".join([*lines, ""])


def _charts(runs: Sequence[Row]) -> Iterator[Page]:
    """One for each type of GPU and folder: speeds by number of GPUs and batch."""
    index = Index()
    index.add([_index_row(row) for row in runs])
    for device, data in sorted({(row["device"], row["data"]) for row in runs}):
        where = (("device", (device,)), ("data", (data,)))
        query = Query(y="mean_speed", x="devices", by=("effective_batch",), mark="bar", where=where)
        spec = chart.make_spec(query, index.points(query), index.values, index.unit(query))
        last_day = max(row["started"] for row in runs)[:10]
        yield Page(f"{last_day}:{device}:{data}.svg", draw(".svg", spec))


def _index_row(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in (*BESIDE, "failure")}
