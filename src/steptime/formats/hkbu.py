"""HKBU DLBench's result line: `-t seconds -a seconds -I epoch:accuracy:loss,…`."""

from __future__ import annotations

import re

from steptime.formats import Found, Original
from steptime.formats._parse import number, whole

TITLE = "HKBU DLBench result lines"
LINE = re.compile(r"^\s*-t\s+(\S+)\s+-a\s+(\S+)\s+-I\s+\"?([^\"\s]*)\"?\s*$", re.MULTILINE)
# tool-netType-network-device-devIdN-cCOUNT-bBATCH-time-host.log
NAME = re.compile(
    r"(?P<tool>\w+)-(?P<kind>\w+)-(?P<network>\w+)-(?P<device>.+)-devId(?P<id>-?\d+)-c(?P<count>\d+)-b(?P<batch>\d+)-"
)


def recognises(name: str, head: bytes) -> bool:
    return b"-t " in head and b"-I " in head and bool(LINE.search(head.decode(errors="replace")))


def read(file: Original) -> Found:
    name = NAME.search(file.folders.name)
    told = name.groupdict() if name else {}
    for match in LINE.finditer(file.text):
        epochs = [part.split(":") for part in match[3].split(",") if part.count(":") == 2]
        seconds = number(match[2])
        batch = whole(told.get("batch"))
        speed = batch / seconds if batch and seconds else None
        yield file.run(
            f"line {file.text.count(chr(10), 0, match.start()) + 1}",
            {
                "model": told.get("network"), "framework": told.get("tool"), "device": told.get("device"),
                "phase": "training", "devices": whole(told.get("count")), "effective_batch": batch,
                "suite": "HKBU DLBench", "unit": "samples",
            },
            {
                "step_time": seconds,
                "throughput": speed,
                "accuracy": number(epochs[-1][1]) if epochs else None,
                "loss": number(epochs[-1][2]) if epochs else None,
            },
            failure="" if seconds and seconds > 0 else "no time of a mini-batch",
            more={"total_seconds": number(match[1]), "epochs": [[number(v) for v in epoch] for epoch in epochs]},
        )  # fmt: skip
