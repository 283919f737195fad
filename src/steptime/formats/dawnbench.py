"""DAWNBench entries: a JSON description with inference results, and for training a TSV beside it, one line an epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import (
    framework,
    number,
    parsed,
    scaled,
    software,
    spelled,
    table,
    version,
    whole,
)
from steptime.formats._writer import Page

TITLE = "DAWNBench entries"
# What a training run had to reach. SQuAD's F1 is written as a share by some and in percent by others.
TARGETS = {
    "ImageNet": ("top5Accuracy", 0.93),
    "CIFAR10": ("top1Accuracy", 0.94),
    "SQuAD": ("f1Score", 0.73),
}
ASSUMED = ("replica_batch", "suite")
MEASURES = ("top5Accuracy", "top1Accuracy", "f1Score")


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"{":
        return b'"authorEmail"' in head and b'"hardware"' in head
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].split(b"\t")
    return {b"epoch", b"hours"} <= {word.strip() for word in first}


def read(file: Original) -> Found:
    stem = file.folders.stem
    if file.text.lstrip()[:1] != "{":
        if not file.neighbour(f"{stem}.json"):
            yield _training(file, {}, file)
        else:
            yield Skipped("file", "the epochs of the entry beside it")
        return
    entry = parsed(file.text)
    if not isinstance(entry, dict):
        yield Skipped("file", "no JSON object")
    elif number(entry.get("latency")) is not None or number(entry.get("cost")) is not None:
        yield _inference(file, entry)
    elif epochs := file.neighbour(f"{stem}.tsv"):
        yield _training(file, entry, epochs)
    else:
        yield Skipped("file", "neither a latency nor the table of epochs beside it")


def _dimensions(file: Original, entry: dict[str, Any], phase: str) -> dict[str, Any]:
    used = entry.get("framework")
    return {
        "model": spelled(entry.get("model")), "phase": phase, "data": _task(file), "suite": "DAWNBench",
        "framework": framework(used), "framework_version": version(used), "software": spelled(used),
        "device": spelled(entry.get("hardware")), "submitter": spelled(entry.get("author")),
    }  # fmt: skip


def _task(file: Original) -> str:
    return next((name for name in TARGETS if name in file.folders.parts), "")


def _inference(file: Original, entry: dict[str, Any]) -> Row:
    misc = entry.get("misc")
    batch = whole(misc.get("batch_size")) if isinstance(misc, dict) else None
    reached = {name: _share(entry.get(name)) for name in MEASURES}
    return file.run(
        "entry",
        {
            **_dimensions(file, entry, "inference"),
            "replica_batch": batch or 1,
            "effective_batch": batch or 1,
        },
        {
            "step_time": scaled(entry.get("latency"), 1e-3),
            "cost": number(entry.get("cost")),
            "accuracy": next((share for share in reached.values() if share is not None), None),
        },
        started=spelled(entry.get("timestamp")),
        more={**reached, **_kept(entry)},
    )


def _kept(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        name: entry.get(name) for name in ("codeURL", "commitHash", "costPerHour", "usedBlacklist")
    }


def _share(value: Any) -> float | None:
    found = number(value)
    return found / 100 if found is not None and found > 1 else found


def _training(file: Original, entry: dict[str, Any], epochs: Original) -> Row:
    """The columns come in any order. A run that stops below its target failed."""
    rows = [row for _, row in table(epochs.text, "\t") if number(row.get("hours")) is not None]
    if not rows:
        return Skipped("file", "no epoch with its hours")
    measure, target = TARGETS.get(
        _task(file), (next((name for name in MEASURES if name in rows[0]), ""), 0.0)
    )
    reached = [
        (scaled(row["hours"], 3600.0) or 0.0, _share(row.get(measure)) or 0.0) for row in rows
    ]
    seconds = next((time for time, share in reached if share >= target), None)
    hourly = number(entry.get("costPerHour"))
    return file.run(
        "entry",
        _dimensions(file, entry, "training"),
        {
            "time_to_accuracy": seconds,
            "cost": None if seconds is None or hourly is None else hourly * seconds / 3600,
            "accuracy": max(share for _, share in reached),
        },
        failure="" if seconds is not None else f"{measure} never reached {target:.0%}",
        started=spelled(entry.get("timestamp")),
        more={
            **_kept(entry),
            "target": target,
            "measure": measure,
            "epochs": len(rows),
            "history": reached,
        },
    )


def write(rows: Sequence[dict[str, Any]]) -> Iterator[Page | Skipped]:
    """An entry for each row, in the folder of its task: latencies of one batch in milliseconds, accuracies in percent,
    times to accuracy as the epochs' hours. DAWNBench has no throughput: its speed is the latency, or the time."""
    for row in rows:
        phase, seconds = row.get("phase"), row.get("time_to_accuracy")
        task = f"{row['data']}/" if row.get("data") in TARGETS else ""
        if phase == "inference" and row.get("step_time"):
            yield Page(
                f"{task}inference/{row['id']}.json", _entry(row, _latency(row)), (row["id"],)
            )
        elif phase == "training" and seconds and row.get("accuracy"):
            hourly = {"costPerHour": row["cost"] / seconds * 3600} if row.get("cost") else {}
            yield Page(f"{task}train/{row['id']}.json", _entry(row, hourly), (row["id"],))
            yield Page(f"{task}train/{row['id']}.tsv", _epochs(row))
        else:
            yield Skipped(
                row["id"],
                "neither a latency of inference nor a training with accuracy and the time to it",
            )


def _entry(row: dict[str, Any], result: dict[str, Any]) -> bytes:
    entry = {
        "version": "v1.0", "author": row.get("submitter") or "", "authorEmail": "",
        "framework": software(row), "codeURL": "", "model": row.get("model") or "",
        "hardware": row.get("device") or "", "timestamp": row.get("started") or "", **result,
    }  # fmt: skip
    return json.dumps(entry, indent=4, ensure_ascii=False).encode()


def _latency(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"latency": 1000 * row["step_time"]}
    found |= {"cost": row["cost"]} if row.get("cost") else {}
    found |= (
        {"top1Accuracy": 100 * row["accuracy"]} if (row.get("accuracy") or 0) > 0.01 else {}
    )  # less reads as a share
    return found | {"misc": {"batch_size": whole(row.get("effective_batch")) or 1}}


def _epochs(row: dict[str, Any]) -> bytes:
    """All epochs where they are known; otherwise one line, which does not say how many there were."""
    measure = TARGETS.get(row.get("data") or "", ("top1Accuracy", 0.0))[0]
    history = (row.get("more") or {}).get("history") if row.get("data") in TARGETS else None
    reached = (
        list(enumerate(history, 1))
        if history
        else [("", (row["time_to_accuracy"], row["accuracy"]))]
    )
    scale = 1 if measure == "f1Score" else 100
    lines = [
        f"{epoch}\t{seconds / 3600!r}\t{scale * share!r}" for epoch, (seconds, share) in reached
    ]
    return "\n".join([f"epoch\thours\t{measure}", *lines, ""]).encode()
