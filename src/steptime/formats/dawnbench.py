"""DAWNBench entries: a JSON file, and for training a TSV beside it with one line per epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import (
    as_dict,
    clean_text,
    framework,
    integer,
    number,
    parse_json,
    scale,
    software,
    table_rows,
    version,
)
from steptime.formats._writer import Page

TITLE = "DAWNBench entries"
# What a training run had to reach. Some write SQuAD's F1 as a share, others in percent.
TARGETS = {
    "ImageNet": ("top5Accuracy", 0.93),
    "CIFAR10": ("top1Accuracy", 0.94),
    "SQuAD": ("f1Score", 0.73),
}
# What a reader of the format assumes if a row does not say it.
ASSUMED = ("replica_batch", "suite")
MEASURES = ("top5Accuracy", "top1Accuracy", "f1Score")
# Kept in `more` as they are.
KEPT = ("codeURL", "commitHash", "costPerHour", "usedBlacklist")
# Less than this would be read as a share of 1, not as percent.
LEAST_PERCENT = 0.01


class Epoch(NamedTuple):
    """When an epoch ended, and what it reached."""

    seconds: float
    share: float


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
        return b'"authorEmail"' in head and b'"hardware"' in head
    first_line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    names = {name.strip() for name in first_line.split(b"\t")}
    return {b"epoch", b"hours"} <= names


def read(file: Original) -> Rows:
    stem = file.folders.stem
    if file.text.lstrip()[:1] != "{":
        if file.neighbour(f"{stem}.json"):
            yield Skipped("file", "the epochs of the entry beside it")
        else:
            yield _read_training(file, {}, file)
        return
    entry = parse_json(file.text)
    if not isinstance(entry, dict):
        yield Skipped("file", "no JSON object")
    elif number(entry.get("latency")) is not None or number(entry.get("cost")) is not None:
        yield _read_inference(file, entry)
    elif epochs := file.neighbour(f"{stem}.tsv"):
        yield _read_training(file, entry, epochs)
    else:
        yield Skipped("file", "neither a latency nor the table of epochs beside it")


def _dimensions(file: Original, entry: dict[str, Any], phase: str) -> dict[str, Any]:
    software_text = entry.get("framework")
    return {
        "model": clean_text(entry.get("model")),
        "phase": phase,
        "data": _task(file),
        "suite": "DAWNBench",
        "framework": framework(software_text),
        "framework_version": version(software_text),
        "software": clean_text(software_text),
        "device": clean_text(entry.get("hardware")),
        "submitter": clean_text(entry.get("author")),
    }


def _task(file: Original) -> str:
    return next((name for name in TARGETS if name in file.folders.parts), "")


def _read_inference(file: Original, entry: dict[str, Any]) -> Row:
    batch = integer(as_dict(entry.get("misc")).get("batch_size")) or 1
    shares = {name: _share(entry.get(name)) for name in MEASURES}
    dimensions = _dimensions(file, entry, "inference")
    dimensions["replica_batch"] = batch
    dimensions["effective_batch"] = batch
    reached = [share for share in shares.values() if share is not None]
    return file.run(
        "entry",
        dimensions,
        {
            "step_time": scale(entry.get("latency"), 1e-3),
            "cost": number(entry.get("cost")),
            "accuracy": reached[0] if reached else None,
        },
        started=clean_text(entry.get("timestamp")),
        more=shares | {name: entry.get(name) for name in KEPT},
    )


def _share(value: Any) -> float | None:
    parsed = number(value)
    return parsed / 100 if parsed is not None and parsed > 1 else parsed


def _read_training(file: Original, entry: dict[str, Any], table: Original) -> Row:
    """A run that stops below its target failed."""
    rows = [row for _, row in table_rows(table.text, "\t") if number(row.get("hours")) is not None]
    if not rows:
        return Skipped("file", "no epoch with its hours")
    measure, target = _target(file, rows[0])
    epochs = []
    for row in rows:
        seconds_so_far = scale(row["hours"], 3600.0) or 0.0
        epochs.append(Epoch(seconds_so_far, _share(row.get(measure)) or 0.0))
    seconds = next((epoch.seconds for epoch in epochs if epoch.share >= target), None)
    hourly = number(entry.get("costPerHour"))
    # The cost of the hours until the target, not of the complete run.
    cost = None
    if seconds is not None and hourly is not None:
        cost = hourly * seconds / 3600
    kept = {name: entry.get(name) for name in KEPT}
    return file.run(
        "entry",
        _dimensions(file, entry, "training"),
        {
            "time_to_accuracy": seconds,
            "cost": cost,
            "accuracy": max(epoch.share for epoch in epochs),
        },
        failure="" if seconds is not None else f"{measure} never reached {target:.0%}",
        started=clean_text(entry.get("timestamp")),
        more={
            **kept,
            "target": target,
            "measure": measure,
            "epochs": len(rows),
            "history": epochs,
        },
    )


def _target(file: Original, row: dict[str, str]) -> tuple[str, float]:
    """The measure and what it had to reach; for an unknown task the first measure there is."""
    task = _task(file)
    if task:
        return TARGETS[task]
    return next((name for name in MEASURES if name in row), ""), 0.0


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """An entry for each row, in the folder of its task.

    Latencies of one batch are in milliseconds, accuracies in percent, times to accuracy in the
    hours of the epochs. DAWNBench has no throughput."""
    for row in rows:
        name = row["id"]
        phase = row.get("phase")
        seconds = row.get("time_to_accuracy")
        task = f"{row['data']}/" if row.get("data") in TARGETS else ""
        if phase == "inference" and row.get("step_time"):
            yield Page(f"{task}inference/{name}.json", _entry(row, _latency(row)), (name,))
        elif phase == "training" and seconds and row.get("accuracy"):
            hourly = {"costPerHour": row["cost"] / seconds * 3600} if row.get("cost") else {}
            yield Page(f"{task}train/{name}.json", _entry(row, hourly), (name,))
            yield Page(f"{task}train/{name}.tsv", _epoch_table(row))
        else:
            yield Skipped(
                name,
                "neither a latency of inference nor a training with accuracy and the time to it",
            )


def _entry(row: dict[str, Any], result: dict[str, Any]) -> bytes:
    entry = {
        "version": "v1.0",
        "author": row.get("submitter") or "",
        "authorEmail": "",
        "framework": software(row),
        "codeURL": "",
        "model": row.get("model") or "",
        "hardware": row.get("device") or "",
        "timestamp": row.get("started") or "",
        **result,
    }
    return json.dumps(entry, indent=4, ensure_ascii=False).encode()


def _latency(row: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {"latency": 1000 * row["step_time"]}
    if row.get("cost"):
        values["cost"] = row["cost"]
    if (row.get("accuracy") or 0) > LEAST_PERCENT:
        values["top1Accuracy"] = 100 * row["accuracy"]
    values["misc"] = {"batch_size": integer(row.get("effective_batch")) or 1}
    return values


def _epoch_table(row: dict[str, Any]) -> bytes:
    """All epochs if they are known; otherwise one line without the number of its epoch."""
    measure = TARGETS.get(row.get("data") or "", ("top1Accuracy", 0.0))[0]
    history = (row.get("more") or {}).get("history") if row.get("data") in TARGETS else None
    numbered: list[tuple[Any, Any]] = [("", (row["time_to_accuracy"], row["accuracy"]))]
    if history:
        numbered = list(enumerate(history, 1))
    factor = 1 if measure == "f1Score" else 100
    lines = [f"epoch\thours\t{measure}"]
    for epoch, (seconds, share) in numbered:
        lines.append(f"{epoch}\t{seconds / 3600!r}\t{factor * share!r}")
    return "\n".join([*lines, ""]).encode()
