"""PSC's Deep MNIST: Slurm outputs of single runs, whose configuration is in their names, and its CSV of results."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import matches, number, spelled, table, whole
from steptime.formats._writer import Page

TITLE = "PSC Deep MNIST results"
HEAD = ",mean_speed,Mean_Time_Per_Step,speed_uncertainty,Speed_Jitter,gpu_type,num_gpu,staged_from"
# The five grammars of names. Colons became underscores when colons turned out to be illegal on some file systems.
# 2018-06-05-k80:2:local, 20180531-k80:1:local, 2018-06-14-GPU-k80:1:128:local:PS, 2018-07-01-CPU-RM:E5-2695:4:local,
# 2018-07-24-CPU-GPU_E5-2683-V4_1_128_local
DAY = r"(?P<day>\d{4}-?\d\d-?\d\d)-"
REST = r"(?:[:_](?P<batch>\d+))?[:_](?P<staging>local|scratch)(?:[:_](?P<towers>PS|IN))?$"
GPU = re.compile(DAY + r"(?:GPU-)?(?P<device>[a-z]+\d+)[:_](?P<devices>\d+)" + REST)
CPU = re.compile(
    DAY + r"CPU-(?P<partition>[A-Za-z]+)[:_](?P<device>[^:_]+)[:_](?P<cores>\d+)" + REST
)
RESULTS = {
    "step_time": r"^Mean Time Per Step : ([\d.eE+-]+)",
    "throughput": r"^Mean Speed : ([\d.eE+-]+)",
    "speed_uncertainty": r"^speed uncertainty : ([\d.eE+-]+)",
    "jitter": r"^Speed Jitter : ([\d.eE+-]+)",
    "accuracy": r"^test accuracy ([\d.eE+-]+)",
}
JOB = {
    "job": r"JobId=(\d+)",
    "node": r"^ +NodeList=(\S+)",
    "cores": r"NumCPUs=(\d+)",
    "partition": r"Partition=(\S+)",
}
NETWORK = ("deep_mnist", "deepmnist")  # theirs, and ours
# What the table has no column for and its readers know: the network, and that times and speeds are means.
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
FAILURES = (
    (r"(DUE TO TIME LIMIT)", "Slurm's time limit"),
    (r"(\*\*\* JOB .* CANCELLED)", "cancelled"),
    (r"([Oo]ut of memory|ResourceExhausted|OOM)", "out of memory"),
    (r"^(\w*Error\b.*)", "crashed"),
    (r"(Exited with exit code \d+)", "crashed"),
)


def recognises(name: str, head: bytes) -> bool:
    if head.startswith(HEAD.encode()):
        return True
    slurm = b"scontrol show jobid" in head or b"SLURM_JOB_NAME=" in head
    return slurm and (b"MNIST" in head or b"Mnist" in head or b"DeepMNIST" in head)


def read(file: Original) -> Found:
    if file.text.startswith(HEAD):
        for line, row in table(file.text):
            yield _row(file, f"line {line}", row)
    else:
        yield _log(file)


def named(name: str) -> dict[str, Any]:
    """What the file's name tells: the device, how many, the batch, where the data were staged, how towers share it."""
    for grammar, cores in ((GPU, False), (CPU, True)):
        if found := grammar.search(name):
            told = found.groupdict()
            return {
                **told,
                "devices": 1 if cores else int(told["devices"]),
                "batch": whole(told["batch"]),
            }
    return {}


def _fixed(device: str, devices: int | None, staging: str | None) -> dict[str, Any]:
    return {
        "model": "deep_mnist", "phase": "training", "framework": "tensorflow", "data": spelled(staging),
        "device": device, "devices": devices, "unit": "images", "suite": "PSC Deep MNIST",
    }  # fmt: skip


def _log(file: Original) -> Row:
    text, told = file.text, named(file.folders.name)
    metrics = {name: number(matches(pattern, text)) for name, pattern in RESULTS.items()}
    job = {name: matches(pattern, text) for name, pattern in JOB.items()}
    gres = re.search(r"Gres=gpu:(\w+):(\d+)", text)
    device = told.get("device") or (gres[1] if gres else "")
    devices = told.get("devices") or (int(gres[2]) if gres else None)
    # One tower was built whatever was allocated; the per-GPU mode divides by one GPU's batch.
    defects = ["speed is of one GPU, not of all"] if told.get("towers") == "IN" else []
    if (devices or 1) > 1 and not told.get("towers"):
        defects.append("the script builds one tower: more GPUs were allocated than used")
    speed, seconds = metrics["throughput"], metrics["step_time"]
    batch = told.get("batch") or whole(matches(r"batch_size=(\d+)", text))
    batch = batch or (round(speed * seconds) if speed and seconds else None)
    if told.get("towers") == "IN":
        metrics["throughput_per_device"] = metrics.pop("throughput")
    metrics |= {"mean_time": seconds, "mean_speed": metrics.get("throughput")}
    return file.run(
        "log",
        {
            **_fixed(device, devices, told.get("staging")), "effective_batch": batch, "server": job["node"],
            "framework_version": matches(r"TensorFlow/tf([\d.]+)", text),
            "nodes": whole(matches(r"NumNodes=(\d+)", text)), "mode": told.get("towers"),
            "threads": whole(told.get("cores") or job["cores"]),
        },
        metrics,
        failure="" if speed else _failure(text),
        started=matches(r"StartTime=(\S+)", text) or spelled(told.get("day")),
        more={**job, "partition": told.get("partition") or job["partition"]},
        defects=tuple(defects),
    )  # fmt: skip


def _failure(text: str) -> str:
    for pattern, cause in FAILURES:
        if evidence := matches(pattern, text):
            return f"{cause}: {evidence[:200]}" if cause == "crashed" else cause
    return "the log ends without a result"


def _row(file: Original, place: str, row: dict[str, str]) -> Row:
    speed, seconds = number(row.get("mean_speed", "")), number(row.get("Mean_Time_Per_Step", ""))
    if speed is None:
        return Skipped(place, f"no speed: {row['mean_speed']!r}")
    staging = row.get("staged_from", "").lstrip("$").lower()
    defects = (
        ("the script builds one tower: more GPUs were allocated than used",)
        if row.get("num_gpu", "") != "1"
        else ()
    )
    return file.run(
        place,
        {
            **_fixed(row.get("gpu_type", ""), whole(row.get("num_gpu", "")), staging),
            "effective_batch": round(speed * seconds) if seconds else None,
        },
        {
            "throughput": speed, "step_time": seconds, "mean_speed": speed, "mean_time": seconds,
            "jitter": number(row.get("Speed_Jitter", "")),
            "speed_uncertainty": number(row.get("speed_uncertainty", "")),
        },
        started=matches(r"(\d{4}-\d\d-\d\d)", file.folders.name),
        defects=defects,
    )  # fmt: skip


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """Their table; the file has today's date, as theirs have. Speeds are of all devices together, times in seconds."""
    text, kept = io.StringIO(), list[str]()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEAD.split(","))
    for row in rows:
        if why := unfit(row):
            yield Skipped(row["id"], why)
        else:
            lines.writerow([len(kept), *_cells(row)])
            kept.append(row["id"])
    if kept:
        name = f"{datetime.now(UTC):%Y-%m-%d}:TF_PERFORMANCE_RESULTS.csv"
        yield Page(name, text.getvalue().encode(), tuple(kept))


def unfit(row: dict[str, Any]) -> str:
    """The table has no column for the network: whoever reads it takes it for theirs."""
    if row.get("model") not in NETWORK or row.get("phase") != "training":
        return (
            "the table is of Deep MNIST in training; it has no column for other networks or phases"
        )
    return (
        "" if row.get("mean_speed") or row.get("throughput") else "no speed of all devices together"
    )


def _cells(row: dict[str, Any]) -> list[Any]:
    """Theirs are means: ours, too, where they are known."""
    speed, seconds = (
        row.get("mean_speed") or row["throughput"],
        row.get("mean_time") or row.get("step_time"),
    )
    staging = row.get("data") or ""
    place = f"${staging.upper()}" if staging in ("scratch", "local") else staging
    devices = whole(row.get("devices"))
    return [
        speed,
        seconds,
        row.get("speed_uncertainty"),
        row.get("jitter"),
        row.get("device"),
        devices,
        place,
    ]
