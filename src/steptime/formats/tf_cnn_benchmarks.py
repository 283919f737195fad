"""tf_cnn_benchmarks' printed output, also in Lambda's layout of folders, with temperatures and machine beside it."""

from __future__ import annotations

import re
from statistics import fmean
from typing import Any

from steptime.formats import Found, Original, Skipped
from steptime.formats._parse import matches, number, spelled, whole

TITLE = "tf_cnn_benchmarks outputs"
STEP = re.compile(
    r"^(\d+)\timages/sec: ([\d.]+) \+/- ([\d.]+) \(jitter = ([\d.]+)\)\t(\S+)", re.MULTILINE
)
# 7742-8xA100-SXM4-40GB_TF2_3.logs / syn-replicated-fp16-8gpus-inference / vgg16-448 / throughput / 1
MACHINE = re.compile(
    r"(?P<cpu>[^-]+(?:-\d{4}\w*)?)-(?:(?P<count>\d+)x)?(?P<gpu>.+?)(?:_TF(?P<version>[\d_]+))?\.logs"
)
CONFIGURATION = re.compile(
    r"(?P<data>real|syn)-(?P<update>\w+)-(?P<precision>fp\d+)-(?P<devices>\d+)gpus"
)
PHASES = {"training": "training", "forward only": "inference", "evaluation": "evaluation"}
METADATA = re.compile(rb"^(?:Memory|CPU|GPU 0|CUDA|TF|Kernel)\t", re.MULTILINE)
THERMAL = re.compile(rb"\d{9,11}, [\d.]+(?:, ?\d+)+,? *\r?\n")


def recognises(name: str, head: bytes) -> bool:
    if b"images/sec:" in head or (b"TensorFlow:  " in head and b"SingleSess:  " in head):
        return True
    return bool(THERMAL.match(head)) or len(METADATA.findall(head[:2000])) >= 3


def read(file: Original) -> Found:
    head = file.head
    if THERMAL.match(head):
        yield Skipped("file", "temperatures of the run beside it")
    elif "images/sec" not in file.text and "SingleSess:" not in file.text:
        yield Skipped("file", "describes the machine of the runs beside it")
    else:
        yield _run(file)


def _run(file: Original) -> Any:
    text, told, steps = file.text, _path(file), STEP.findall(file.text)
    header = {
        key: matches(rf"^{key}: +(.+)$", text)
        for key in ("Model", "Mode", "Dataset", "TensorFlow", "Optimizer")
    }
    devices = len(re.findall(r"'[^']+'", matches(r"^Devices: +(.+)$", text))) or whole(
        told.get("devices")
    )
    total = number(matches(r"^total images/sec: ([\d.]+)", text))
    last = {
        int(step): values for step, *values in steps
    }  # under Horovod every rank prints the line
    speed = total if total is not None else number(list(last.values())[-1][0]) if last else None
    uncertainty, jitter, loss = (
        (number(v) for v in list(last.values())[-1][1:4]) if last else (None, None, None)
    )
    batch = whole(matches(r"^Batch size: +(\d+) global", text))
    mode = header["Mode"].lower()
    return file.run(
        "run",
        {
            "model": header["Model"], "phase": next((PHASES[w] for w in PHASES if w in mode), mode), "unit": "images",
            "framework": "tensorflow", "framework_version": told.get("version") or header["TensorFlow"],
            "precision": told.get("precision"), "device": told.get("gpu"), "devices": devices,
            "effective_batch": batch, "replica_batch": whole(matches(r"^ *(\d+) per device", text)),
            "data": header["Dataset"], "layout": matches(r"^Data format: +(.+)$", text).lower(),
            "optimizer": header["Optimizer"], "suite": "tf_cnn_benchmarks", "server": told.get("cpu"),
            "mode": matches(r"^Variables: +(.+)$", text),
        },
        {
            "throughput": speed, "throughput_per_device": speed / devices if speed and devices else None,
            "speed_uncertainty": uncertainty, "jitter": jitter, "temperature": _temperature(file),
            "loss": loss if "training" in mode else None,
        },
        failure="" if total is not None else "no total: the run did not end",
        more={**_metadata(file), "steps": len(last), "variables": matches(r"^Variables: +(.+)$", text),
              "all_reduce": matches(r"^AllReduce: +(.+)$", text)},
        defects=("every rank printed its steps; each is counted once",) if len(last) < len(steps) else (),
    )  # fmt: skip


def _path(file: Original) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for part in file.folders.parts:
        if found := MACHINE.fullmatch(part):
            gpu = spelled(found["gpu"].replace("_", " "))
            told |= {
                "cpu": found["cpu"],
                "gpu": gpu,
                "version": (found["version"] or "").replace("_", "."),
            }
        elif found := CONFIGURATION.match(part):
            told |= {"precision": found["precision"], "devices": found["devices"]}
    return told


def _temperature(file: Original) -> float | None:
    """The mean over the whole run and all devices."""
    beside = file.neighbour(f"../thermal/{file.folders.name}")
    if beside is None:
        return None
    lines = (line.split(",")[2:] for line in beside.text.splitlines())
    found = [value for line in lines for word in line if (value := number(word)) is not None]
    return fmean(found) if found else None


def _metadata(file: Original) -> dict[str, str]:
    beside = file.neighbour("../../../metadata")
    pairs = (
        (line.split("\t", 1) for line in beside.text.splitlines() if "\t" in line) if beside else ()
    )
    return {
        f"machine {key.strip()}": value.strip()
        for key, value in pairs
        if not key.startswith("GPU ")
    }
