"""A campaign as PSC's results folder has it: a file for each run, named by its configuration, the table, bar charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.charts import chart
from steptime.charts.draw import draw
from steptime.core.record import Record
from steptime.formats import Skipped, psc
from steptime.formats._writer import Page
from steptime.index import rows
from steptime.index.index import Index
from steptime.index.query import Query

Row = dict[str, Any]
NUMBERS = (
    ("Mean Time Per Step", "mean_time", ""),
    ("Mean Speed", "mean_speed", " Images/Sec"),
    ("speed uncertainty", "speed_uncertainty", ""),
    ("Speed Jitter", "jitter", ""),
)


def pages(records: Sequence[Record]) -> Iterator[Page | Skipped]:
    """Failures have a file that says so and no line in the table, as theirs."""
    told = [_row(record) for record in records]
    measured = [row for row in told if row["status"] == "ok"]
    unfit = {row["id"]: reason for row in told if (reason := psc.unfit({"mean_speed": 1.0, **row}))}
    yield from (Skipped(name, reason) for name, reason in unfit.items())
    kept = [row for row in told if row["id"] not in unfit]
    for name, row in _named(kept).items():
        yield Page(name, _log(row).encode(), (row["id"],))
    fitting = [row for row in measured if row["id"] not in unfit]
    yield from (page for page in psc.write(fitting) if isinstance(page, Page))
    yield from _charts(fitting)


def _row(record: Record) -> Row:
    """With what their files tell beyond the catalogue."""
    slurm = record.last.environment.get("slurm", {})
    job = {"job": slurm.get("SLURM_JOB_ID", ""), "partition": slurm.get("SLURM_JOB_PARTITION", "")}
    failure = (
        "" if record.measurements else f"{record.failures[-1].cause}: {record.failures[-1].reason}"
    )
    found = rows.make_row(record)
    unit = (
        record.case.node_type or record.case.device
    )  # a word of a file name, where the catalogue has the full name
    return {
        **found,
        "device": unit,
        "data": record.case.staging or found["data"],
        "failure": failure,
        "more": job,
    }


def _named(runs: Sequence[Row]) -> dict[str, Row]:
    """YYYY-MM-DD-<gpu type>:<number of gpus>:<staged from>; the batch comes in between where it tells runs apart."""
    plain = Counter(_name(row) for row in runs)
    found: dict[str, Row] = {}
    for row in runs:
        name = _name(row, batch=plain[_name(row)] > 1)
        names = (name, *(f"{name}.{number}" for number in range(2, len(runs) + 1)))
        found[next(one for one in names if one not in found)] = row
    return found


def _name(row: Row, *, batch: bool = False) -> str:
    words = [
        row["device"],
        row["devices"],
        *([row["effective_batch"]] if batch else []),
        row["data"],
    ]
    return f"{row['started'][:10]}-{':'.join(map(str, words))}"


def _log(row: Row) -> str:
    """Only lines that their own scripts look for, and ours."""
    more = row["more"]
    lines = [
        f"DeepMNIST by {row['software']}: {row['phase']}, measured by steptime as {row['id']}",
        f"+ scontrol show jobid={more['job']}",
        f"JobId={more['job']} JobName=steptime",
        f"   StartTime={row['started']}",
        f"   Partition={more['partition']}",
        f"   NodeList={row['server']}",
        f"   NumNodes={row['nodes']} NumCPUs={row['threads']}",
        f"   Gres=gpu:{row['device']}:{row['devices']}",
        f"batch_size={row['effective_batch']}",
    ]
    if row["failure"]:
        return "\n".join([*lines, f"failed, {row['failure']}", ""])
    return "\n".join(
        [*lines, *(f"{title} : {row[name]}{unit}" for title, name, unit in NUMBERS), ""]
    )


def _charts(runs: Sequence[Row]) -> Iterator[Page]:
    """One for each type of GPU and directory: speeds by number of GPUs and batch."""
    index = Index()
    index.add(
        [
            {name: value for name, value in row.items() if name not in ("more", "failure")}
            for row in runs
        ]
    )
    for device, data in sorted({(row["device"], row["data"]) for row in runs}):
        where = (("device", (device,)), ("data", (data,)))
        query = Query(y="mean_speed", x="devices", by=("effective_batch",), mark="bar", where=where)
        picture = draw(
            ".svg", chart.make_spec(query, index.points(query), index.values, index.unit(query))
        )
        yield Page(f"{max(row['started'] for row in runs)[:10]}:{device}:{data}.svg", picture)
