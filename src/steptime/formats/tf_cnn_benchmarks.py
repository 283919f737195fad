"""tf_cnn_benchmarks' printed output, also in Lambda's layout of folders.

There the temperatures and the description of the machine lie beside it."""

from __future__ import annotations

import re
from statistics import fmean
from typing import Any

from steptime.formats import Original, Row, Rows, Skipped
from steptime.formats._parse import clean_text, first_match, integer, number, ratio

TITLE = "tf_cnn_benchmarks outputs"
# Step, images/sec, uncertainty, jitter, loss
STEP = re.compile(
    r"^(\d+)\timages/sec: ([\d.]+) \+/- ([\d.]+) \(jitter = ([\d.]+)\)\t(\S+)", re.MULTILINE
)
# 7742-8xA100-SXM4-40GB_TF2_3.logs / syn-replicated-fp16-8gpus-inference / vgg16-448
#     / throughput / 1
MACHINE = re.compile(
    r"(?P<cpu>[^-]+(?:-\d{4}\w*)?)-(?:(?P<count>\d+)x)?(?P<gpu>.+?)"
    r"(?:_TF(?P<version>[\d_]+))?\.logs"
)
CONFIGURATION = re.compile(
    r"(?P<data>real|syn)-(?P<update>\w+)-(?P<precision>fp\d+)-(?P<devices>\d+)gpus"
)
# By what the header's mode contains.
PHASES = {"training": "training", "forward only": "inference", "evaluation": "evaluation"}
# Lines of the machine's description; three of them tell it from other tables.
METADATA = re.compile(rb"^(?:Memory|CPU|GPU 0|CUDA|TF|Kernel)\t", re.MULTILINE)
# Seconds since 1970, elapsed seconds, then a temperature per GPU.
THERMAL = re.compile(rb"\d{9,11}, [\d.]+(?:, ?\d+)+,? *\r?\n")


def recognises(name: str, head: bytes) -> bool:
    if b"images/sec:" in head or (b"TensorFlow:  " in head and b"SingleSess:  " in head):
        return True
    return THERMAL.match(head) is not None or len(METADATA.findall(head[:2000])) >= 3


def read(file: Original) -> Rows:
    if THERMAL.match(file.head):
        yield Skipped("file", "temperatures of the run beside it")
    elif "images/sec" not in file.text and "SingleSess:" not in file.text:
        yield Skipped("file", "describes the machine of the runs beside it")
    else:
        yield _read_run(file)


def _header(text: str, key: str) -> str:
    return first_match(rf"^{key}: +(.+)$", text)


def _read_run(file: Original) -> Row:
    text = file.text
    settings = _path_settings(file)
    printed = STEP.findall(text)
    # With Horovod every rank prints the line of a step; the last one counts.
    steps = {int(step): values for step, *values in printed}
    last = [number(value) for value in list(steps.values())[-1]] if steps else [None] * 4
    last_speed, uncertainty, jitter, loss = last
    total = number(first_match(r"^total images/sec: ([\d.]+)", text))
    speed = total if total is not None else last_speed
    devices = _device_count(text) or integer(settings.get("devices"))
    is_training = "training" in _header(text, "Mode").lower()
    defects = []
    if len(steps) < len(printed):
        defects.append("every rank printed its steps; each is counted once")
    return file.run(
        "run",
        _dimensions(text, settings) | {"devices": devices},
        {
            "throughput": speed,
            "throughput_per_device": ratio(speed, devices),
            "speed_uncertainty": uncertainty,
            "jitter": jitter,
            "temperature": _temperature(file),
            "loss": loss if is_training else None,
        },
        failure="" if total is not None else "no total: the run did not end",
        more={
            **_metadata(file),
            "steps": len(steps),
            "variables": _header(text, "Variables"),
            "all_reduce": _header(text, "AllReduce"),
        },
        defects=defects,
    )


def _dimensions(text: str, settings: dict[str, Any]) -> dict[str, Any]:
    mode = _header(text, "Mode").lower()
    return {
        "model": _header(text, "Model"),
        "phase": next((PHASES[name] for name in PHASES if name in mode), mode),
        "unit": "images",
        "framework": "tensorflow",
        "framework_version": settings.get("version") or _header(text, "TensorFlow"),
        "precision": settings.get("precision"),
        "device": settings.get("gpu"),
        "effective_batch": integer(first_match(r"^Batch size: +(\d+) global", text)),
        "replica_batch": integer(first_match(r"^ *(\d+) per device", text)),
        "data": _header(text, "Dataset"),
        "layout": _header(text, "Data format").lower(),
        "optimizer": _header(text, "Optimizer"),
        "suite": "tf_cnn_benchmarks",
        "server": settings.get("cpu"),
        "mode": _header(text, "Variables"),
    }


def _device_count(text: str) -> int:
    return len(re.findall(r"'[^']+'", _header(text, "Devices")))


def _path_settings(file: Original) -> dict[str, Any]:
    """What Lambda's names of folders say."""
    settings: dict[str, Any] = {}
    for folder in file.folders.parts:
        if match := MACHINE.fullmatch(folder):
            settings["cpu"] = match["cpu"]
            settings["gpu"] = clean_text(match["gpu"].replace("_", " "))
            settings["version"] = (match["version"] or "").replace("_", ".")
        elif match := CONFIGURATION.match(folder):
            settings["precision"] = match["precision"]
            settings["devices"] = match["devices"]
    return settings


def _temperature(file: Original) -> float | None:
    """The mean over the run and all devices."""
    neighbour = file.neighbour(f"../thermal/{file.folders.name}")
    if neighbour is None:
        return None
    readings = []
    for line in neighbour.text.splitlines():
        # Time and seconds come first.
        for cell in line.split(",")[2:]:
            value = number(cell)
            if value is not None:
                readings.append(value)
    return fmean(readings) if readings else None


def _metadata(file: Original) -> dict[str, str]:
    neighbour = file.neighbour("../../../metadata")
    if neighbour is None:
        return {}
    metadata = {}
    for line in neighbour.text.splitlines():
        key, tab, value = line.partition("\t")
        if tab and not key.startswith("GPU "):
            metadata[f"machine {key.strip()}"] = value.strip()
    return metadata
