"""A comparison of two cases: the verdict first, then what differs and how certain it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from steptime.cli import output
from steptime.cli.render.format import plural, processes
from steptime.core.case import SETTINGS, Case

if TYPE_CHECKING:
    from steptime.analysis.compare import Comparison, Verdict
    from steptime.core.record import Attempt

# Other outcomes, such as faster, complete the sentence `B is …`.
VERDICTS = {
    "same": "B and A take the same time",
    "likely same": "B and A likely take the same time",
    "inconclusive": "Inconclusive",
}
NO_DIFFERENCE = "nothing: a case against itself; by chance 1 in 20 such comparisons differs"
TOO_FEW = (
    "too few processes to decide anything; "
    "run both again with --preset standard, which has six of each or more"
)
# Remarks that are not in this table are sentences already.
REMARKS = {
    "too_few_processes": TOO_FEW,
    "not_interleaved": (
        "measured at different times; the interval includes the usual change between sessions"
    ),
}


class ComparedPair(NamedTuple):
    comparison: Comparison
    # One attempt of each side, which tells what was compared.
    a: Attempt
    b: Attempt


def show(pair: ComparedPair) -> None:
    comparison = pair.comparison
    count = comparison.units
    # Interleaved pairs, or the processes of two sessions.
    units = plural(count, "pair") if pair.b.pair else f"{processes(count)} each"
    output.echo(f"{verdict_sentence(comparison.verdict)}, {units}.")
    output.echo()
    output.echo(f"A        {pair.a.case.label}")
    output.echo(f"B        {pair.b.case.label}")
    differences = []
    for name, (first, second) in _differences(pair.a.case, pair.b.case).items():
        differences.append(f"{name} {_value(first)} → {_value(second)}")
    output.echo(f"differs  {', '.join(differences) or NO_DIFFERENCE}")
    show_p_value(comparison.verdict)
    if comparison.cpu_time is not None:
        output.echo(f"by CPU time alone: {verdict_sentence(comparison.cpu_time)}")
    for remark in comparison.remarks:
        output.echo(f"note: {REMARKS.get(remark, remark)}")


def to_document(pair: ComparedPair) -> dict[str, Any]:
    return {
        **pair.comparison.to_dict(),
        "a": _side(pair.a),
        "b": _side(pair.b),
        "differs": _differences(pair.a.case, pair.b.case),
        "machine": pair.b.machine,
    }


def show_p_value(verdict: Verdict) -> None:
    if verdict.p is not None:
        output.echo(f"p-value  p = {verdict.p:.2g}")


def verdict_sentence(verdict: Verdict) -> str:
    sentence = VERDICTS.get(verdict.outcome, f"B is {verdict.outcome}")
    return f"{sentence}: ×{ratio_text(verdict)} in time"


def ratio_text(verdict: Verdict) -> str:
    """`0.981 (0.975 … 0.987)`."""
    if verdict.low is None:
        return f"{verdict.ratio:.3f}"
    return f"{verdict.ratio:.3f} ({verdict.low:.3f} … {verdict.high:.3f})"


def _side(attempt: Attempt) -> dict[str, Any]:
    return {"case": attempt.case.to_dict(), "session": attempt.session}


def _differences(a: Case, b: Case) -> dict[str, tuple[Any, Any]]:
    differences = {}
    for name in SETTINGS:
        first, second = getattr(a, name), getattr(b, name)
        if first != second:
            differences[name] = (first, second)
    return differences


def _value(value: Any) -> str:
    return "none" if value == "" else str(value)
