"""What is stored, as one page that needs nothing else: the answer first, then what it rests on."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from markupsafe import Markup

from steptime.analysis.certificates import Certificate, covering, remark, uncertified
from steptime.analysis.result import Result, result
from steptime.analysis.scaling.speedup import METHOD, Scaling
from steptime.charts.chart import spec
from steptime.charts.defaults import usual
from steptime.charts.draw import drawn
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.catalogue import DIMENSIONS
from steptime.index.index import Point
from steptime.index.query import Query, Where
from steptime.index.rows import Row, quarantine
from steptime.index.scaling import grown
from steptime.report.summary import headline
from steptime.web.context import Desk
from steptime.web.pages.run import command

MOST_ROWS, MOST_RUNS, MOST_LINES = 5000, 500, 100
NUMBER = re.compile(r"\d+(?:\.\d+)?")
STYLE = (Path(__file__).parents[1] / "web" / "static" / "report.css").read_text()
SEAL = f"'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
POLICY = f"default-src 'none'; style-src {SEAL}"
"""No script, nothing from elsewhere, no other style than the page's own."""


@dataclass(frozen=True)
class Chart:
    asked: Query
    title: str
    svg: str
    names: list[str]
    points: list[Point]
    mixed: dict[str, int]  # label of what a point mixes, and how many values
    unit: str  # what is counted in all of them

    def to_dict(self) -> dict[str, Any]:
        told = {"query": self.asked.to_url(), "title": self.title, "mixed": self.mixed}
        return {**told, "points": [asdict(point) for point in self.points]}


@dataclass(frozen=True)
class Told:
    """The same thing said of several runs."""

    what: str
    count: int
    example: str  # a run, and what is said of it


@dataclass(frozen=True)
class Proof:
    """Of two frameworks that did the same work: whether their results may be compared."""

    work: str
    frameworks: str
    certified: bool
    why: str


@dataclass(frozen=True)
class Report:
    made: str
    query: str
    headline: str
    counts: dict[str, int]
    charts: list[Chart]
    own: list[tuple[Record, Result]]
    scaling: list[Scaling]
    proofs: list[Proof]
    certificates: list[Certificate]
    failures: list[Told]
    quarantine: list[Told]
    flags: list[Told]
    sources: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Without pictures."""
        plain = {
            name: getattr(self, name) for name in ("made", "query", "headline", "counts", "sources")
        }
        lists = ("proofs", "failures", "quarantine", "flags")
        certificates = [
            {"name": one.name, "case": one.case.label, "passed": one.passed}
            for one in self.certificates
        ]
        return {
            **plain,
            "charts": [chart.to_dict() for chart in self.charts],
            "scaling": [table.to_dict() for table in self.scaling],
            "own": [_own(*pair) for pair in self.own],
            "certificates": certificates,
            **{name: [asdict(one) for one in getattr(self, name)] for name in lists},
        }


def _own(record: Record, told: Result) -> dict[str, Any]:
    words = {"id": record.attempts[0].id, "session": record.session, "plan": record.last.plan}
    return {
        **words,
        "case": record.case.label,
        "headline": told.headline,
        "command": command(record),
    }


def made(desk: Desk, asked: Query | None = None) -> Report:
    """Of one question; of everything, in the usual views, where there is none."""
    query = asked or Query()
    rows = desk.index.listing(query, MOST_ROWS)
    found = desk.source.all_found([row["id"] for row in rows[:MOST_RUNS]])
    runs = [found[row["id"]] for row in rows if row["id"] in found]
    records = [run for run in runs if isinstance(run, Record) and run.measurements]
    own = [(record, result(record)) for record in records[:MOST_LINES]]
    views = [asked] if asked else usual(rows)
    known = desk.source.certificates()
    failed, doubted = _failed(query), _doubted(query)
    counted = {"results": query, "failed": failed, "quarantined": doubted}
    counts = {name: desk.index.matching(one, valued=False) for name, one in counted.items()} | {
        "looked_at": len(runs)
    }
    return Report(
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        query=query.to_url(),
        headline=headline(
            desk, views[0] if views else query, _of(desk, views[0]) if views else rows
        ),
        counts=counts,
        charts=[chart for view in views if _says(chart := _chart(desk, view), asked is not None)],
        own=own,
        scaling=[table for view in views for table in grown(desk.index, view)],
        proofs=proofs(records, known)[:MOST_LINES],
        certificates=[
            one for one in known if any(covering(record.last, [one]) for record in records)
        ],
        failures=[*_reasons(desk, failed), *_losses(records)],
        quarantine=_reasons(desk, doubted),
        flags=_doubts(own, runs),
        sources=_sources(desk, query),
    )


def as_html(desk: Desk, report: Report) -> str:
    machines = {
        record.last.machine.get("fingerprint", ""): _machine(record.last.machine)
        for record, _ in report.own
    }
    software = sorted(
        {
            f"{name} {word}"
            for record, _ in report.own
            for name, word in record.last.software.items()
        }
    )
    sessions = Counter(
        (record.session, record.last.plan, record.last.started[:10]) for record, _ in report.own
    )
    return desk.templates.get_template("report.html").render(
        report=report, style=Markup(STYLE), policy=POLICY, command=command, machines=machines, software=software,
        sessions=sessions, method=METHOD, store=desk.source.store.path, most=MOST_LINES,
    )  # fmt: skip


def _machine(machine: dict[str, Any]) -> list[str]:
    told = {"cores": "{} cores", "memory_gib": "{} GiB", "kernel": "kernel {}"}
    names = ("host", "cpu", "cores", "memory_gib", "os", "kernel")
    boards = [board["name"] for board in machine.get("gpus") or []]
    return [
        *(told.get(name, "{}").format(machine[name]) for name in names if machine.get(name)),
        *boards,
    ]


def proofs(records: Sequence[Record], known: Sequence[Certificate]) -> list[Proof]:
    groups: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in records:
        case = record.case
        sides = groups.setdefault((case.workload, case.phase, case.precision, case.device), {})
        sides[f"{case.framework} {case.mode}"] = record
    return [
        _proof(work, pair, known)
        for work, sides in groups.items()
        for pair in combinations(sorted(sides.items()), 2)
        if pair[0][1].case.framework != pair[1][1].case.framework
    ]


def _proof(
    work: tuple[str, ...], pair: Sequence[tuple[str, Record]], known: Sequence[Certificate]
) -> Proof:
    (one, a), (other, b) = pair
    why = uncertified(a.last, b.last, known)
    return Proof(
        ", ".join(work), f"{one}, {other}", why is None, why or remark(a.last, b.last, known)
    )


def _sources(desk: Desk, query: Query) -> dict[str, int]:
    asked = {
        name: replace(query, where=(*query.where, ("source", (name,))))
        for name in desk.index.values("source")
    }
    counts = {name: desk.index.matching(one, valued=False) for name, one in asked.items()}
    return {
        name: count for name, count in sorted(counts.items(), key=lambda pair: -pair[1]) if count
    }


def _of(desk: Desk, query: Query) -> list[Row]:
    return desk.index.listing(query, MOST_ROWS)


def _chart(desk: Desk, query: Query) -> Chart:
    points = desk.index.points(query)
    unit = desk.index.unit(query)
    picture = spec(query, points, desk.index.values, unit)
    title = picture.pop("title")
    svg = (
        drawn(
            ".svg",
            {
                **picture,
                "background": None,
                "padding": {"left": 5, "top": 5, "bottom": 5, "right": 30},
            },
        ).decode()
        if points
        else ""
    )
    mixed = {
        DIMENSIONS[name].label.lower(): count for name, count in desk.index.mixed(query).items()
    }
    names = [*(["series"] if query.series else []), *query.groups]
    words = f"{title['text']}{': ' if title['subtitle'] else ''}{title['subtitle']}"
    return Chart(query, words, Markup(svg), names, points, mixed, unit)


def _says(chart: Chart, was_asked_for: bool) -> bool:
    """An axis on which all is 0 shows nothing, as where no precision but fp32 has a price; one may still ask for it."""
    axes = (
        [point.value for point in chart.points],
        [point.x for point in chart.points if point.x is not None],
    )
    return bool(chart.points) and (was_asked_for or all(any(axis) for axis in axes if axis))


def _failed(query: Query) -> Query:
    return replace(
        query, where=(*_without(query.where, "status", "plausible"), ("!status", ("ok",)))
    )


def _doubted(query: Query) -> Query:
    return replace(
        query, where=(*_without(query.where, "status", "plausible"), ("plausible", ("no",)))
    )


def _without(where: Where, *names: str) -> Where:
    return tuple((key, values) for key, values in where if key.lstrip("!") not in names)


def _reasons(desk: Desk, query: Query) -> list[Told]:
    found: dict[str, list[str]] = {}
    rows = _of(desk, query)[:MOST_RUNS]
    runs = desk.source.all_found([row["id"] for row in rows])
    for row in rows:
        run = runs.get(row["id"])
        why = str(row["status"])
        if isinstance(run, ForeignRun):
            why = f"{run.source}: {run.quarantine or run.failure}"
        elif run is not None and row["plausible"] == "no":
            why = f"{row['framework']}: {quarantine(run, result(run))}"
        elif run is not None and run.failures:
            why = f"{row['framework']}: {run.failures[-1].cause}, {run.failures[-1].reason}"
        found.setdefault(NUMBER.sub("#", why), []).append(
            f"{row['id'][-8:]}: {why.partition(': ')[2] or why}"
        )
    return _counted(found)


def _losses(records: Sequence[Record]) -> list[Told]:
    """Processes that failed beside others, which measured the case."""
    found: dict[str, list[str]] = {}
    for record in records:
        for failure in record.failures:
            why = f"{record.case.framework}: {failure.cause}, {failure.reason}"
            said = f"{record.attempts[0].id[-8:]}: {failure.reason}"
            found.setdefault(
                f"{NUMBER.sub('#', why)} (a process; others measured the case)", []
            ).append(said)
    return _counted(found)


def _doubts(
    own: Sequence[tuple[Record, Result]], runs: Sequence[Record | ForeignRun]
) -> list[Told]:
    """Flags of results measured here, and known faults of the sources of others."""
    found: dict[str, list[str]] = {}
    for record, numbers in own:
        for flag in numbers.flags:
            said = f"{record.attempts[0].id[-8:]}: {flag.evidence}"
            found.setdefault(f"{flag.name.replace('_', ' ')} ({flag.level})", []).append(said)
    for run in (run for run in runs if isinstance(run, ForeignRun)):
        for defect in run.defects:
            found.setdefault(f"{run.source}: {NUMBER.sub('#', defect)}", []).append(
                f"{run.id[-8:]}: {defect}"
            )
    return _counted(found)


def _counted(found: dict[str, list[str]]) -> list[Told]:
    told = [Told(what, len(said), said[0]) for what, said in found.items()]
    return sorted(told, key=lambda one: -one.count)[:MOST_LINES]
