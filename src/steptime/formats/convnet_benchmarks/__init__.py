"""convnet-benchmarks' logs of ten frameworks, 2014 to 2016: times of four networks and of five layers."""

from __future__ import annotations

from steptime.formats import Found, Original, Skipped
from steptime.formats.convnet_benchmarks import caffe, others, torch7

TITLE = "convnet-benchmarks logs"
PARTS = (torch7, caffe, others)


def recognises(name: str, head: bytes) -> bool:
    return any(part.recognises(head) for part in PARTS)


def read(file: Original) -> Found:
    part = next((part for part in PARTS if part.recognises(file.head)), None)
    if part is None:
        yield Skipped("log", "no times of a framework that is known here")
        return
    runs = 0
    for found in part.read(file):
        runs += 1
        yield found
    if not runs:
        yield Skipped("log", "the log ends before its first result")
