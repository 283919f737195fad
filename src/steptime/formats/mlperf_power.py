"""The power meter's log of an MLPerf run (spl.txt): one line a second."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean

from steptime.formats import Found, Original, Skipped
from steptime.formats._mlperf import described, placed
from steptime.formats._parse import number

TITLE = "MLPerf power meter logs"
LINE = re.compile(r"^Time,(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d+),Watts,([-\d.]+),", re.MULTILINE)


def recognises(name: str, head: bytes) -> bool:
    return head.startswith(b"Time,") and b",Watts," in head[:200]


def read(file: Original) -> Found:
    found = [(_time(time), number(watts)) for time, watts in LINE.findall(file.text)]
    points = [
        (time, watts)
        for time, watts in found
        if time is not None and watts is not None and watts >= 0
    ]
    if len(points) < 2:
        yield Skipped("log", "fewer than two readings of the meter")
        return
    where = placed(file)
    seconds = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    energy = sum(
        (a[1] + b[1]) / 2 * max(0.0, s) for (a, b), s in zip(pairwise(points), seconds, strict=True)
    )
    yield file.run(
        "log",
        where.dimensions
        | {name: value for name, value in described(file, where).items() if value}
        | {"phase": "inference", "scenario": where.scenario},
        {"power": fmean(watts for _, watts in points), "energy": energy},
        started=datetime.fromtimestamp(points[0][0], UTC).isoformat(timespec="seconds"),
        more={"readings": len(points), "seconds": round(points[-1][0] - points[0][0], 3)},
    )


def _time(text: str) -> float | None:
    try:
        return datetime.strptime(text, "%m-%d-%Y %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
