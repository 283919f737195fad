"""What a report says about stored results: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from steptime.analysis.certificates import (
    Certificate,
    certified_remark,
    find_certificate,
    why_uncertified,
)
from steptime.analysis.result import Result, result
from steptime.analysis.scaling.speedup import ScalingTable
from steptime.charts.chart import make_spec
from steptime.charts.draw import draw
from steptime.charts.usual_views import usual_queries
from steptime.core.foreign import ForeignRun
from steptime.core.record import Record
from steptime.index.catalogue import DIMENSIONS
from steptime.index.index import Point
from steptime.index.query import Query, Where
from steptime.index.rows import Row
from steptime.index.scaling import scaling_tables
from steptime.index.workspace import Workspace
from steptime.report.reasons import (
    MOST_LINES,
    Reason,
    failed_processes,
    flag_reasons,
    row_reasons,
)
from steptime.report.rerun import rerun_command
from steptime.report.summary import headline

# Charts and counts cover all results; these limits bound what is read run by run.
MOST_ROWS = 5000
MOST_RUNS = 500
# The right side leaves room for the last label of the axis, which vl-convert cuts otherwise.
PADDING = {"left": 5, "top": 5, "bottom": 5, "right": 30}

THIN_LINES = {
    "interval": "Thin lines are 95 % intervals.",
    "deviation": "Thin lines are one standard deviation to each side.",
    "iqr": "Thin lines reach from quartile to quartile.",
    "range": "Thin lines reach from the least to the most.",
}
SINGLE_RESULTS = "No thin lines: every point is a single result."
NO_LINES = {
    "interval": "No point has an interval: too few processes, or none was stored.",
    "deviation": SINGLE_RESULTS,
    "iqr": SINGLE_RESULTS,
    "range": SINGLE_RESULTS,
}


@dataclass(frozen=True)
class Chart:
    query: Query
    title: str
    svg: str
    names: list[str]
    points: list[Point]
    mixed: dict[str, int]  # label of what a point mixes, and how many values
    unit: str  # what is counted in all of them

    @property
    def caption(self) -> str:
        """What thin lines are; a chart without any says why."""
        if self.query.err == "none":
            return ""
        shown = [point for point in self.points if point.low is not None]
        if shown or any(point.x_low is not None for point in self.points):
            return THIN_LINES[self.query.err]
        return NO_LINES[self.query.err]

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query.to_url(),
            "title": self.title,
            "mixed": self.mixed,
            "points": [asdict(point) for point in self.points],
        }


@dataclass(frozen=True)
class Proof:
    """Whether the results of two frameworks that did the same work may be compared."""

    work: str
    frameworks: str
    certified: bool
    why: str


@dataclass(frozen=True)
class Report:
    created: str
    query: str
    headline: str
    counts: dict[str, int]
    charts: list[Chart]
    measured: list[tuple[Record, Result]]  # with steptime, not imported
    scaling: list[ScalingTable]
    proofs: list[Proof]
    certificates: list[Certificate]
    failures: list[Reason]
    quarantine: list[Reason]
    flags: list[Reason]
    sources: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Without pictures."""
        return {
            "created": self.created,
            "query": self.query,
            "headline": self.headline,
            "counts": self.counts,
            "sources": self.sources,
            "charts": [chart.to_dict() for chart in self.charts],
            "scaling": [table.to_dict() for table in self.scaling],
            "measured": [_result_facts(*pair) for pair in self.measured],
            "certificates": [_certificate_facts(item) for item in self.certificates],
            "proofs": [asdict(proof) for proof in self.proofs],
            "failures": [asdict(reason) for reason in self.failures],
            "quarantine": [asdict(reason) for reason in self.quarantine],
            "flags": [asdict(reason) for reason in self.flags],
        }


def _result_facts(record: Record, numbers: Result) -> dict[str, Any]:
    return {
        "id": record.attempts[0].id,
        "session": record.session,
        "plan": record.last.plan,
        "case": record.case.label,
        "headline": numbers.headline,
        "command": rerun_command(record),
    }


def _certificate_facts(certificate: Certificate) -> dict[str, Any]:
    return {
        "name": certificate.name,
        "case": certificate.case.label,
        "passed": certificate.passed,
    }


def make_report(workspace: Workspace, query: Query | None = None) -> Report:
    """A report of one query, or of everything in the usual views if there is none."""
    scope = query or Query()
    index = workspace.index
    rows = index.list_runs(scope, MOST_ROWS)
    runs = _runs_of(workspace, rows)
    records = [run for run in runs if isinstance(run, Record) and run.measurements]
    measured = [(record, result(record)) for record in records[:MOST_LINES]]
    views = [query] if query else usual_queries(rows)
    certificates = workspace.certificates()
    failed = _failed_query(scope)
    implausible = _implausible_query(scope)
    return Report(
        created=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        query=scope.to_url(),
        headline=_headline(workspace, scope, views, rows),
        counts={
            "results": index.count_runs(scope, valued=False),
            "failed": index.count_runs(failed, valued=False),
            "quarantined": index.count_runs(implausible, valued=False),
            "looked_at": len(runs),
        },
        charts=_charts(workspace, views, keep_empty=query is not None),
        measured=measured,
        scaling=[table for view in views for table in scaling_tables(index, view)],
        proofs=make_proofs(records, certificates)[:MOST_LINES],
        certificates=_used_certificates(certificates, records),
        failures=[*_reasons(workspace, failed), *failed_processes(records)],
        quarantine=_reasons(workspace, implausible),
        flags=flag_reasons(measured, runs),
        sources=_sources(workspace, scope),
    )


def _runs_of(workspace: Workspace, rows: Sequence[Row]) -> list[Record | ForeignRun]:
    """What the newest of these rows were made of, in their order."""
    runs = workspace.find_runs([row["id"] for row in rows[:MOST_RUNS]])
    return [runs[row["id"]] for row in rows if row["id"] in runs]


def _headline(
    workspace: Workspace, scope: Query, views: Sequence[Query], rows: Sequence[Row]
) -> str:
    # The first view is the one that the reader sees below the headline.
    if not views:
        return headline(workspace, scope, rows)
    return headline(workspace, views[0], workspace.index.list_runs(views[0], MOST_ROWS))


def _charts(workspace: Workspace, views: Sequence[Query], *, keep_empty: bool) -> list[Chart]:
    """`keep_empty`: also charts on which everything is 0, because the query names them."""
    # A view that shows nothing is left out, so each chart is drawn before it is judged.
    charts = [_chart(workspace, view) for view in views]
    return [chart for chart in charts if chart.points and (keep_empty or _is_telling(chart))]


def _used_certificates(
    certificates: Sequence[Certificate], records: Sequence[Record]
) -> list[Certificate]:
    used = []
    for item in certificates:
        # One by one: among all of them, only the newest would be found.
        if any(find_certificate(record.last, [item]) for record in records):
            used.append(item)
    return used


def make_proofs(records: Sequence[Record], certificates: Sequence[Certificate]) -> list[Proof]:
    """One for each pair of frameworks that did the same work."""
    groups: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in records:
        case = record.case
        key = (case.workload, case.phase, case.precision, case.device)
        groups.setdefault(key, {})[f"{case.framework} {case.mode}"] = record
    proofs = []
    for work, sides in groups.items():
        for (a_name, a), (b_name, b) in combinations(sorted(sides.items()), 2):
            # Modes of one framework need no proof against each other.
            if a.case.framework == b.case.framework:
                continue
            refusal = why_uncertified(a.last, b.last, certificates)
            why = refusal or certified_remark(a.last, b.last, certificates)
            proof = Proof(", ".join(work), f"{a_name}, {b_name}", refusal is None, why)
            proofs.append(proof)
    return proofs


def _sources(workspace: Workspace, query: Query) -> dict[str, int]:
    """How many results each source has, the largest first."""
    index = workspace.index
    counts = {}
    for name in index.values("source"):
        narrowed = replace(query, where=(*query.where, ("source", (name,))))
        count = index.count_runs(narrowed, valued=False)
        if count:
            counts[name] = count
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _chart(workspace: Workspace, query: Query) -> Chart:
    index = workspace.index
    points = index.points(query)
    unit = index.unit(query)
    spec = make_spec(query, points, index.values, unit)
    title = spec.pop("title")
    svg = ""
    if points:
        picture = {**spec, "background": None, "padding": PADDING}
        svg = draw(".svg", picture).decode()
    mixed = {}
    for name, count in index.mixed_dimensions(query).items():
        mixed[DIMENSIONS[name].label.lower()] = count
    return Chart(
        query=query,
        title=": ".join(filter(None, (title["text"], title["subtitle"]))),
        svg=svg,
        names=query.columns,
        points=points,
        mixed=mixed,
        unit=unit,
    )


def _is_telling(chart: Chart) -> bool:
    """Whether no axis has only zeros, as that of accuracy loss has if all results are fp32."""
    y_values = [point.value for point in chart.points]
    x_values = [point.x for point in chart.points if point.x is not None]
    return any(y_values) and (any(x_values) or not x_values)


def _failed_query(query: Query) -> Query:
    where = _without(query.where, "status", "plausible")
    return replace(query, where=(*where, ("!status", ("ok",))))


def _implausible_query(query: Query) -> Query:
    where = _without(query.where, "status", "plausible")
    return replace(query, where=(*where, ("plausible", ("no",))))


def _without(where: Where, *names: str) -> Where:
    return tuple((key, values) for key, values in where if key.lstrip("!") not in names)


def _reasons(workspace: Workspace, query: Query) -> list[Reason]:
    rows = workspace.index.list_runs(query, MOST_ROWS)[:MOST_RUNS]
    runs = workspace.find_runs([row["id"] for row in rows])
    return row_reasons(rows, runs)
