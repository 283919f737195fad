"""A report as one HTML page that needs nothing else, and the templates' common language."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime import __version__
from steptime.analysis.scaling.speedup import METHOD
from steptime.core.errors import NotInstalled
from steptime.core.format import duration, with_prefix
from steptime.index.catalogue import DIMENSIONS, METRICS
from steptime.report.reasons import MOST_LINES
from steptime.report.report import Report
from steptime.report.rerun import rerun_command

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
# Inline in the page, because a report is one file; the policy names its hash.
STYLE = (TEMPLATES / "report.css").read_text()
STYLE_HASH = f"'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
# No script, nothing from elsewhere, no other style than the page's own.
POLICY = f"default-src 'none'; style-src {STYLE_HASH}"
# What a report says about a machine, in this order.
MACHINE_FACTS = {
    "host": "{}",
    "cpu": "{}",
    "cores": "{} cores",
    "memory_gib": "{} GiB",
    "os": "{}",
    "kernel": "kernel {}",
}


def make_environment(*folders: Path) -> Environment:
    """Templates of these folders and of the report, with the filters that all of them share."""
    try:
        from jinja2 import Environment, FileSystemLoader, select_autoescape
    except ImportError:
        raise NotInstalled(
            "This command needs the report extra: pip install 'steptime[report]'"
        ) from None
    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
    )
    environment.filters["number"] = format_number
    environment.filters["quantity"] = format_quantity
    environment.globals["version"] = __version__
    environment.globals["dimensions"] = DIMENSIONS
    environment.globals["metrics"] = METRICS
    return environment


def format_number(value: Any) -> str:
    """Four significant digits, with separators between thousands. Text stays as it is."""
    if value is None:
        return ""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    # 9,999.5 is the smallest value that four digits would round to 10,000.
    return f"{value:,.0f}" if abs(value) >= 9_999.5 else f"{value:.4g}"


def format_quantity(value: Any, unit: str) -> str:
    """A value with its unit, in a size that can be read: 88.07 µs, 30.22 GFLOP/s."""
    if value is None:
        return "–"
    if unit == "s":
        return duration(value)
    if unit in ("FLOP/s", "B/s", "B"):
        return with_prefix(value, unit)
    return f"{format_number(value)} {unit}".rstrip()


def render_report(report: Report, store: object) -> str:
    """`store`: where the report's results are kept, for its first lines."""
    template = make_environment().get_template("report.html")
    return template.render(
        report=report,
        store=store,
        style=STYLE,
        policy=POLICY,
        rerun_command=rerun_command,
        machines=_machines(report),
        software=_software(report),
        sessions=_sessions(report),
        method=METHOD,
        most=MOST_LINES,
    )


def _machines(report: Report) -> dict[str, list[str]]:
    machines = {}
    for record, _ in report.measured:
        machine = record.last.machine
        machines[machine.get("fingerprint", "")] = _describe_machine(machine)
    return machines


def _describe_machine(machine: dict[str, Any]) -> list[str]:
    facts = []
    for name, pattern in MACHINE_FACTS.items():
        if machine.get(name):
            facts.append(pattern.format(machine[name]))
    # A machine without GPUs has none, or an empty list.
    boards = [board["name"] for board in machine.get("gpus") or []]
    return [*facts, *boards]


def _software(report: Report) -> list[str]:
    packages = set()
    for record, _ in report.measured:
        for name, version in record.last.software.items():
            packages.add(f"{name} {version}")
    return sorted(packages)


def _sessions(report: Report) -> Counter[tuple[str, str, str]]:
    sessions: Counter[tuple[str, str, str]] = Counter()
    for record, _ in report.measured:
        day = record.last.started[:10]
        sessions[record.session, record.last.plan, day] += 1
    return sessions
