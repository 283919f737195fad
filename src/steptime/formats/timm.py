"""timm's CSV tables: speed of image models on many devices, and their ImageNet accuracy."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Row, Skipped
from steptime.formats._parse import number, precision, scaled, table, whole

TITLE = "timm benchmark and accuracy tables"
# benchmark-infer-amp-nhwc-pt240-cu124-rtx4090-dynamo.csv
NAME = re.compile(
    r"benchmark-(?P<phase>infer|train)-(?P<precision>[a-z0-9_]+)-(?P<layout>nchw|nhwc)-pt(?P<version>\d+)"
    r"-(?P<cuda>cu\d+|cpu)-(?P<device>[^.-]+)(?P<dynamo>-dynamo)?"
)
DATA = re.compile(r"results-(?P<data>[\w-]+)\.csv")


def recognises(name: str, head: bytes) -> bool:
    first = head.split(b"\n", 1)[0].strip()
    return first.startswith(b"model,") and (
        b"_samples_per_sec" in first or b",top1,top1_err," in first or first == b"model,pretrain"
    )


def read(file: Original) -> Found:
    found = NAME.search(file.folders.name)
    told = _told(found) if found else {}
    for line, row in table(file.text):
        if "top1" in row:
            yield _accuracy(file, f"line {line}", row)
        elif "pretrain" in row:
            yield Skipped(f"line {line}", "says what a model was trained on, which is no result")
        else:
            yield _speed(file, f"line {line}", row, told)


def _told(found: re.Match[str]) -> dict[str, str]:
    return {
        "precision": precision(found["precision"]),
        "layout": found["layout"],
        "device": found["device"],
        "framework_version": _version(found["version"]),
        "software": f"pytorch {_version(found['version'])} {found['cuda']}",
        "mode": "compiled" if found["dynamo"] else "eager",
    }


def _version(digits: str) -> str:
    """113 is 1.13; 240 is 2.4.0."""
    return f"1.{digits[1:]}" if digits.startswith("1") else ".".join(digits)


def _speed(file: Original, place: str, row: dict[str, str], told: dict[str, str]) -> Row:
    phase = "train" if "train_samples_per_sec" in row else "infer"
    speed, batch = (
        number(row.get(f"{phase}_samples_per_sec")),
        whole(row.get(f"{phase}_batch_size")),
    )
    if not row.get("model") or speed is None:
        return Skipped(place, f"no speed: {row.get(f'{phase}_samples_per_sec', '')!r}")
    gmacs = number(row.get("infer_gmacs"))
    return file.run(
        place,
        {
            **told, "model": row["model"], "phase": "training" if phase == "train" else "inference", "unit": "images",
            "framework": "pytorch", "suite": "timm", "devices": 1, "replica_batch": batch, "effective_batch": batch,
        },
        {
            "throughput": speed,
            "throughput_per_device": speed,
            "step_time": scaled(row.get(f"{phase}_step_time"), 1e-3),
            "flops": None if gmacs is None else 2e9 * gmacs * speed,
        },
        more={
            "image_size": whole(row.get(f"{phase}_img_size")),
            "parameters": scaled(row.get("param_count"), 1e6),
            "forward_macs": scaled(row.get("infer_gmacs"), 1e9),
        },
    )  # fmt: skip


def _accuracy(file: Original, place: str, row: dict[str, str]) -> Row:
    share = scaled(row["top1"], 0.01)
    if not row.get("model") or share is None:
        return Skipped(place, f"no accuracy: {row['top1']!r}")
    found = DATA.search(file.folders.name)
    more: dict[str, Any] = {
        name: row.get(name) for name in ("img_size", "crop_pct", "interpolation", "rank_diff")
    }
    more |= {
        "top5_accuracy": scaled(row.get("top5"), 0.01),
        "parameters": scaled(row.get("param_count"), 1e6),
    }
    return file.run(
        place,
        {
            "model": row["model"], "phase": "evaluation", "framework": "pytorch", "suite": "timm",
            "data": found["data"] if found else "",
        },
        {"accuracy": share},
        more=more,
    )  # fmt: skip
