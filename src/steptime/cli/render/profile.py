"""The profile of a step as text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.table import Column, print_table, quantity
from steptime.core.format import byte_count, digits, duration, shorten

if TYPE_CHECKING:
    from steptime.analysis.step_profile import Profile, Share

# --json has more.
MOST_OPERATORS = 12
# Names of GPU kernels have hundreds of characters.
LONGEST_NAME = 60
OPERATOR_COLUMNS = (
    Column("operator", stays=True),
    Column("class", drop=1),
    quantity("calls", drop=2),
    quantity("per step"),
    quantity("share"),
)
# Below it the share would be shown as 0.0 %.
LEAST_SHARE = 0.0005


def show(profile: Profile, store: Path) -> None:
    output.echo(f"{profile.attempt.case.label}\n{profile.sentence}\n")
    _show_times("phase", profile.phases)
    _show_times("class of operators", profile.classes)
    _show_operators(profile.operators)
    if profile.memory:
        rows = []
        for item in profile.memory:
            rows.append([item.name, byte_count(int(item.amount)), _percent(item.share)])
        print_table([Column("memory at the peak"), quantity("held"), quantity("share")], rows)
        output.echo()
    for remark in profile.remarks:
        output.echo(remark)
    for name, reason in profile.absent.items():
        output.echo(f"No {name}: {reason}")
    guide = f"steptime --store {shlex.quote(str(store))} guide"
    output.echo(f"Stored in {store}. The guide shows it, with a timeline: {guide}")


def _show_times(title: str, shares: list[Share]) -> None:
    rows = []
    for item in shares:
        if item.share >= LEAST_SHARE:
            rows.append([item.name, duration(item.amount), _percent(item.share)])
    if rows:
        print_table([Column(title), quantity("per step"), quantity("share")], rows)
        output.echo()


def _show_operators(operators: list[dict[str, Any]]) -> None:
    rows: list[list[str]] = []
    for operator in operators:
        if operator["share"] >= LEAST_SHARE and len(rows) < MOST_OPERATORS:
            name = shorten(operator["name"], LONGEST_NAME)
            times = [duration(operator["seconds"]), _percent(operator["share"])]
            rows.append([name, operator["class"], digits(operator["calls"]), *times])
    if rows:
        print_table(OPERATOR_COLUMNS, rows)
        output.echo()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
