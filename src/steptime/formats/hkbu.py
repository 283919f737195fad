"""HKBU DLBench's result line: `-t seconds -a seconds -I epoch:accuracy:loss,…`."""

from __future__ import annotations

import re

from steptime.formats import Original, Row, Rows
from steptime.formats._parse import integer, line_number, number, ratio

TITLE = "HKBU DLBench result lines"
LINE = re.compile(r"^\s*-t\s+(\S+)\s+-a\s+(\S+)\s+-I\s+\"?([^\"\s]*)\"?\s*$", re.MULTILINE)
# tool-netType-network-device-devIdN-cCOUNT-bBATCH-time-host.log
NAME = re.compile(
    r"(?P<tool>\w+)-(?P<kind>\w+)-(?P<network>\w+)-(?P<device>.+)"
    r"-devId(?P<id>-?\d+)-c(?P<count>\d+)-b(?P<batch>\d+)-"
)


def recognises(name: str, head: bytes) -> bool:
    if b"-t " not in head or b"-I " not in head:
        return False
    return LINE.search(head.decode(errors="replace")) is not None


def read(file: Original) -> Rows:
    match = NAME.search(file.folders.name)
    settings = match.groupdict() if match else {}
    for line in LINE.finditer(file.text):
        yield _read_line(file, line, settings)


def _read_line(file: Original, line: re.Match[str], settings: dict[str, str]) -> Row:
    total, seconds_text, history = line.groups()
    epochs = [entry.split(":") for entry in history.split(",") if entry.count(":") == 2]
    accuracy = number(epochs[-1][1]) if epochs else None
    loss = number(epochs[-1][2]) if epochs else None
    seconds = number(seconds_text)
    batch = integer(settings.get("batch"))
    return file.run(
        f"line {line_number(file.text, line.start())}",
        {
            "model": settings.get("network"),
            "framework": settings.get("tool"),
            "device": settings.get("device"),
            "phase": "training",
            "devices": integer(settings.get("count")),
            "effective_batch": batch,
            "suite": "HKBU DLBench",
            "unit": "samples",
        },
        {
            "step_time": seconds,
            "throughput": ratio(batch, seconds),
            "accuracy": accuracy,
            "loss": loss,
        },
        failure="" if seconds and seconds > 0 else "no time of a mini-batch",
        more={
            "total_seconds": number(total),
            "epochs": [[number(value) for value in epoch] for epoch in epochs],
        },
    )
