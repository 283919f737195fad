"""timm's CSV tables: the speed of image models on many devices, and their accuracy."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import integer, number, precision, scale, table_rows

TITLE = "timm benchmark and accuracy tables"
# benchmark-infer-amp-nhwc-pt240-cu124-rtx4090-dynamo.csv
NAME = re.compile(
    r"benchmark-(?P<phase>infer|train)-(?P<precision>[a-z0-9_]+)-(?P<layout>nchw|nhwc)"
    r"-pt(?P<version>\d+)-(?P<cuda>cu\d+|cpu)-(?P<device>[^.-]+)(?P<dynamo>-dynamo)?"
)
# results-imagenet-real.csv
DATA = re.compile(r"results-(?P<data>[\w-]+)\.csv")
# Kept in `more` as they are.
KEPT = ("img_size", "crop_pct", "interpolation", "rank_diff")


def recognises(name: str, head: bytes) -> bool:
    first_line = head.split(b"\n", 1)[0].strip()
    if not first_line.startswith(b"model,"):
        return False
    has_results = b"_samples_per_sec" in first_line or b",top1,top1_err," in first_line
    return has_results or first_line == b"model,pretrain"


def read(file: Original) -> Rows:
    match = NAME.search(file.folders.name)
    settings = _settings(match) if match else {}
    for line, row in table_rows(file.text):
        location = f"line {line}"
        if "top1" in row:
            yield _read_accuracy(file, location, row)
        elif "pretrain" in row:
            yield Skipped(location, "says what a model was trained on, which is no result")
        else:
            yield _read_speed(file, location, row, settings)


def _settings(match: re.Match[str]) -> dict[str, Any]:
    """What the file's name says."""
    release = _version(match["version"])
    return {
        "precision": precision(match["precision"]),
        "layout": match["layout"],
        "device": match["device"],
        "framework_version": release,
        "software": f"pytorch {release} {match['cuda']}",
        "mode": "compiled" if match["dynamo"] else "eager",
    }


def _version(digits: str) -> str:
    """113 is 1.13; 240 is 2.4.0."""
    return f"1.{digits[1:]}" if digits.startswith("1") else ".".join(digits)


def _read_speed(
    file: Original, location: str, row: dict[str, str], settings: dict[str, Any]
) -> Row:
    prefix = "train" if "train_samples_per_sec" in row else "infer"
    speed_text = row.get(f"{prefix}_samples_per_sec", "")
    speed = number(speed_text)
    if not row.get("model") or speed is None:
        return Skipped(location, f"no speed: {speed_text!r}")
    batch = integer(row.get(f"{prefix}_batch_size"))
    gmacs = number(row.get("infer_gmacs"))
    return file.run(
        location,
        {
            **settings,
            "model": row["model"],
            "phase": "training" if prefix == "train" else "inference",
            "unit": "images",
            "framework": "pytorch",
            "suite": "timm",
            "devices": 1,
            "replica_batch": batch,
            "effective_batch": batch,
        },
        {
            "throughput": speed,
            "throughput_per_device": speed,
            "step_time": scale(row.get(f"{prefix}_step_time"), 1e-3),
            "flops": None if gmacs is None else 2e9 * gmacs * speed,
        },
        more={
            "image_size": integer(row.get(f"{prefix}_img_size")),
            "parameters": scale(row.get("param_count"), 1e6),
            "forward_macs": scale(row.get("infer_gmacs"), 1e9),
        },
    )


def _read_accuracy(file: Original, location: str, row: dict[str, str]) -> Row:
    share = scale(row["top1"], 0.01)
    if not row.get("model") or share is None:
        return Skipped(location, f"no accuracy: {row['top1']!r}")
    match = DATA.search(file.folders.name)
    more: dict[str, Any] = {name: row.get(name) for name in KEPT}
    more["top5_accuracy"] = scale(row.get("top5"), 0.01)
    more["parameters"] = scale(row.get("param_count"), 1e6)
    return file.run(
        location,
        {
            "model": row["model"],
            "phase": "evaluation",
            "framework": "pytorch",
            "suite": "timm",
            "data": match["data"] if match else "",
        },
        {"accuracy": share},
        more=more,
    )
