"""The power meter's log of an MLPerf run (spl.txt): one line per second."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean

from steptime.formats import Original, Rows, Skipped
from steptime.formats._mlperf import described_system, locate_result
from steptime.formats._parse import number

TITLE = "MLPerf power meter logs"
# Time,06-18-2024 10:21:33.512,Watts,1201.5,…
LINE = re.compile(r"^Time,(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d+),Watts,([-\d.]+),", re.MULTILINE)


def recognises(name: str, head: bytes) -> bool:
    return head.startswith(b"Time,") and b",Watts," in head[:200]


def read(file: Original) -> Rows:
    readings = _readings(file.text)
    if len(readings) < 2:
        yield Skipped("log", "fewer than two readings of the meter")
        return
    path = locate_result(file)
    dimensions = path.dimensions | described_system(file, path)
    dimensions["phase"] = "inference"
    dimensions["scenario"] = path.scenario
    first_time = readings[0][0]
    last_time = readings[-1][0]
    yield file.run(
        "log",
        dimensions,
        {"power": fmean(watts for _, watts in readings), "energy": _energy(readings)},
        started=datetime.fromtimestamp(first_time, UTC).isoformat(timespec="seconds"),
        more={"readings": len(readings), "seconds": round(last_time - first_time, 3)},
    )


def _readings(text: str) -> list[tuple[float, float]]:
    """Seconds and watts. Lines that cannot be read are skipped."""
    readings = []
    for time_text, watts_text in LINE.findall(text):
        time = _parse_time(time_text)
        watts = number(watts_text)
        if time is not None and watts is not None and watts >= 0:
            readings.append((time, watts))
    return readings


def _energy(readings: list[tuple[float, float]]) -> float:
    """In joules, by the trapezoidal rule."""
    areas = []
    for (begin, watts_before), (end, watts_after) in pairwise(readings):
        mean_watts = (watts_before + watts_after) / 2
        areas.append(mean_watts * max(0.0, end - begin))
    return sum(areas)


def _parse_time(text: str) -> float | None:
    try:
        moment = datetime.strptime(text, "%m-%d-%Y %H:%M:%S.%f")
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()
