"""convnet-benchmarks' logs of ten frameworks, 2014 to 2016: four networks and five layers."""

from __future__ import annotations

from steptime.formats import Original, Rows, Skipped
from steptime.formats.convnet_benchmarks import caffe, others, torch7

TITLE = "convnet-benchmarks logs"
READERS = (torch7, caffe, others)


def recognises(name: str, head: bytes) -> bool:
    return any(reader.recognises(head) for reader in READERS)


def read(file: Original) -> Rows:
    reader = next((reader for reader in READERS if reader.recognises(file.head)), None)
    if reader is None:
        yield Skipped("log", "no times of a framework that is known here")
        return
    runs = 0
    for row in reader.read(file):
        runs += 1
        yield row
    if not runs:
        yield Skipped("log", "the log ends before its first result")
