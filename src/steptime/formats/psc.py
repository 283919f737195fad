"""PSC's Deep MNIST: Slurm outputs of single runs, and the CSV of their results.

The names of the outputs hold the configuration."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import clean_text, first_match, integer, number, table_rows
from steptime.formats._writer import Page

TITLE = "PSC Deep MNIST results"
HEAD = ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from"
# The five grammars of names. Colons became underscores when they proved illegal on some systems.
#   2018-06-05-k80:2:local                     20180531-k80:1:local
#   2018-06-14-GPU-k80:1:128:local:PS          2018-07-01-CPU-RM:E5-2695:4:local
#   2018-07-24-CPU-GPU_E5-2683-V4_1_128_local
DAY = r"(?P<day>\d{4}-?\d\d-?\d\d)-"
REST = r"(?:[:_](?P<batch>\d+))?[:_](?P<staging>local|scratch)(?:[:_](?P<towers>PS|IN))?$"
GPU = re.compile(DAY + r"(?:GPU-)?(?P<device>[a-z]+\d+)[:_](?P<devices>\d+)" + REST)
CPU = re.compile(
    DAY + r"CPU-(?P<partition>[A-Za-z]+)[:_](?P<device>[^:_]+)[:_](?P<cores>\d+)" + REST
)
# What the script prints at its end.
RESULTS = {
    "step_time": r"^Mean Time Per Step : ([\d.eE+-]+)",
    "throughput": r"^Mean Speed : ([\d.eE+-]+)",
    "speed_uncertainty": r"^speed uncertainty : ([\d.eE+-]+)",
    "jitter": r"^Speed Jitter : ([\d.eE+-]+)",
    "accuracy": r"^test accuracy ([\d.eE+-]+)",
}
# What `scontrol show job` prints at the start.
JOB = {
    "job": r"JobId=(\d+)",
    "node": r"^ +NodeList=(\S+)",
    "cores": r"NumCPUs=(\d+)",
    "partition": r"Partition=(\S+)",
}
# PSC's name, and ours.
NETWORK = ("deep_mnist", "deepmnist")
# What the table has no column for. Its readers know the network, and that numbers are means.
ASSUMED = (
    "model",
    "framework",
    "unit",
    "suite",
    "started",
    "throughput",
    "step_time",
    "effective_batch",
)
# The first pattern that a log without a result has is its cause.
FAILURES = (
    (r"(DUE TO TIME LIMIT)", "Slurm's time limit"),
    (r"(\*\*\* JOB .* CANCELLED)", "cancelled"),
    (r"([Oo]ut of memory|ResourceExhausted|OOM)", "out of memory"),
    (r"^(\w*Error\b.*)", "crashed"),
    (r"(Exited with exit code \d+)", "crashed"),
)
ONE_TOWER = "the script builds one tower: more GPUs were allocated than used"
# The towers share a batch (PS), or each has its own and the speed is that of one (IN).
INDEPENDENT = "IN"


def recognises(name: str, head: bytes) -> bool:
    if head.startswith(HEAD.encode()):
        return True
    is_slurm = b"scontrol show jobid" in head or b"SLURM_JOB_NAME=" in head
    return is_slurm and (b"MNIST" in head or b"Mnist" in head or b"DeepMNIST" in head)


def read(file: Original) -> Rows:
    if file.text.startswith(HEAD):
        for line, row in table_rows(file.text):
            yield _read_row(file, f"line {line}", row)
    else:
        yield _read_log(file)


def parse_name(name: str) -> dict[str, Any]:
    """The device, how many, the batch, where the data were staged, and how towers share them."""
    if match := GPU.search(name):
        settings: dict[str, Any] = match.groupdict()
        settings["devices"] = int(settings["devices"])
    elif match := CPU.search(name):
        settings = match.groupdict()
        settings["devices"] = 1
    else:
        return {}
    settings["batch"] = integer(settings["batch"])
    return settings


def _fixed_dimensions(device: str, devices: int | None, staging: str | None) -> dict[str, Any]:
    return {
        "model": "deep_mnist",
        "phase": "training",
        "framework": "tensorflow",
        "data": clean_text(staging),
        "device": device,
        "devices": devices,
        "unit": "images",
        "suite": "PSC Deep MNIST",
    }


def _read_log(file: Original) -> Row:
    text = file.text
    settings = parse_name(file.folders.name)
    job = {name: first_match(pattern, text) for name, pattern in JOB.items()}
    job["partition"] = settings.get("partition") or job["partition"]
    metrics = {name: number(first_match(pattern, text)) for name, pattern in RESULTS.items()}
    speed = metrics["throughput"]
    seconds = metrics["step_time"]
    towers = settings.get("towers")
    if towers == INDEPENDENT:
        metrics["throughput_per_device"] = metrics.pop("throughput")
    metrics["mean_time"] = seconds
    metrics["mean_speed"] = metrics.get("throughput")
    device, devices = _log_devices(settings, text)
    dimensions = _fixed_dimensions(device, devices, settings.get("staging"))
    dimensions["effective_batch"] = _log_batch(settings, text, speed, seconds)
    dimensions["server"] = job["node"]
    dimensions["framework_version"] = first_match(r"TensorFlow/tf([\d.]+)", text)
    dimensions["nodes"] = integer(first_match(r"NumNodes=(\d+)", text))
    dimensions["mode"] = towers
    dimensions["threads"] = integer(settings.get("cores") or job["cores"])
    return file.run(
        "log",
        dimensions,
        metrics,
        failure="" if speed else _failure(text),
        started=first_match(r"StartTime=(\S+)", text) or clean_text(settings.get("day")),
        more=job,
        defects=_log_defects(towers, devices),
    )


def _log_devices(settings: dict[str, Any], text: str) -> tuple[str, int | None]:
    """By the file's name, or by what Slurm allocated."""
    allocated = re.search(r"Gres=gpu:(\w+):(\d+)", text)
    device = settings.get("device") or (allocated[1] if allocated else "")
    devices = settings.get("devices") or (int(allocated[2]) if allocated else None)
    return device, devices


def _log_batch(
    settings: dict[str, Any], text: str, speed: float | None, seconds: float | None
) -> int | None:
    batch = settings.get("batch") or integer(first_match(r"batch_size=(\d+)", text))
    if batch:
        return int(batch)
    return round(speed * seconds) if speed and seconds else None


def _log_defects(towers: str | None, devices: int | None) -> list[str]:
    """One tower was built whatever was allocated, and one GPU's batch was divided by."""
    if towers == INDEPENDENT:
        return ["speed is of one GPU, not of all"]
    return [ONE_TOWER] if (devices or 1) > 1 and not towers else []


def _failure(text: str) -> str:
    for pattern, cause in FAILURES:
        evidence = first_match(pattern, text)
        if evidence:
            return f"{cause}: {evidence[:200]}" if cause == "crashed" else cause
    return "the log ends without a result"


def _read_row(file: Original, location: str, row: dict[str, str]) -> Row:
    speed = number(row.get("mean_speed", ""))
    seconds = number(row.get("Mean_Time_Per_Step", ""))
    if speed is None:
        return Skipped(location, f"no speed: {row['mean_speed']!r}")
    staging = row.get("staged_from", "").lstrip("$").lower()
    devices = row.get("num_gpu", "")
    dimensions = _fixed_dimensions(row.get("gpu_type", ""), integer(devices), staging)
    dimensions["effective_batch"] = round(speed * seconds) if seconds else None
    return file.run(
        location,
        dimensions,
        {
            "throughput": speed,
            "step_time": seconds,
            "mean_speed": speed,
            "mean_time": seconds,
            "jitter": number(row.get("Speed_Jitter", "")),
            "speed_uncertainty": number(row.get("speed_uncertainty", "")),
        },
        started=first_match(r"(\d{4}-\d\d-\d\d)", file.folders.name),
        defects=(ONE_TOWER,) if devices != "1" else (),
    )


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """PSC's table, named after today's date as theirs is.

    Speeds are those of all devices, times are in seconds."""
    text = io.StringIO()
    ids: list[str] = []
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEAD.split(","))
    for row in rows:
        reason = unfit_reason(row)
        if reason:
            yield Skipped(row["id"], reason)
            continue
        lines.writerow([len(ids), *_cells(row)])
        ids.append(row["id"])
    if ids:
        name = f"{datetime.now(UTC):%Y-%m-%d}:TF_PERFORMANCE_RESULTS.csv"
        yield Page(name, text.getvalue().encode(), tuple(ids))


def unfit_reason(row: dict[str, Any]) -> str:
    """The table has no column for the network: its readers take every row for Deep MNIST."""
    if row.get("model") not in NETWORK or row.get("phase") != "training":
        return (
            "the table is of Deep MNIST in training; it has no column for other networks or phases"
        )
    if not row.get("mean_speed") and not row.get("throughput"):
        return "no speed of all devices together"
    return ""


def _cells(row: dict[str, Any]) -> list[Any]:
    """The table holds means; ours are used if they are known."""
    # Our own runs name the storage first and then the tier: real on disk (scratch).
    staging = (row.get("data") or "").rpartition(" (")[2].rstrip(")")
    if staging in ("scratch", "local"):
        staging = f"${staging.upper()}"
    return [
        row.get("mean_speed") or row["throughput"],
        row.get("mean_time") or row.get("step_time"),
        row.get("speed_uncertainty"),
        row.get("jitter"),
        row.get("device"),
        integer(row.get("devices")),
        staging,
    ]
