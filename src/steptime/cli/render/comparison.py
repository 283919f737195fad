"""A comparison of two cases: the verdict first, then what differs and how certain it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steptime.cli import output
from steptime.cli.render.format import plural, processes

if TYPE_CHECKING:
    from steptime.analysis.compare import Comparison, Verdict
    from steptime.analysis.differences import Differences
    from steptime.core.record import Attempt

# Other outcomes, such as faster, complete the sentence `B is …`.
VERDICTS = {
    "same": "B and A take the same time",
    "likely same": "B and A likely take the same time",
    "inconclusive": "Inconclusive",
}
NO_DIFFERENCE = (
    "nothing: a case against itself, on the same machine with the same software; "
    "by chance 1 in 20 such comparisons differs"
)
TOO_FEW = (
    "too few processes to decide anything; "
    "run both again with --preset standard, which has six of each or more"
)
# Remarks that are not in this table are sentences already; the line on sessions tells the second.
REMARKS = {"too_few_processes": TOO_FEW, "not_interleaved": ""}
# The first column: names of lines.
MARGIN = 9
# Of a group of differences; the machine has more of them if it is another one.
MOST_FACTS = 12


class ComparedPair(NamedTuple):
    comparison: Comparison
    # All processes of each side.
    a: Sequence[Attempt]
    b: Sequence[Attempt]


def show(pair: ComparedPair) -> None:
    from steptime.analysis.accuracy_loss import loss_sentence
    from steptime.analysis.differences import differences

    comparison = pair.comparison
    sentence = f"{verdict_sentence(comparison.verdict)}, {_count_units(comparison)}"
    loss = loss_sentence(pair.a, pair.b)
    output.echo(f"{sentence}; {loss}." if loss else f"{sentence}.")
    output.echo()
    echo_line("A", pair.a[0].case.label)
    echo_line("B", pair.b[0].case.label)
    show_differences(differences(pair.a, pair.b))
    show_p_value(comparison.verdict)
    show_session_deviation(comparison)
    if comparison.cpu_time is not None:
        output.echo(f"by CPU time alone: {verdict_sentence(comparison.cpu_time)}")
    for remark in comparison.remarks:
        sentence = REMARKS.get(remark, remark)
        if sentence:
            output.echo(f"note: {sentence}")


def _count_units(comparison: Comparison) -> str:
    """Interleaved pairs, or the processes of two results."""
    a, b = comparison.processes
    if comparison.paired:
        return plural(comparison.units, "pair")
    return f"{processes(a)} each" if a == b else f"{a} and {processes(b)}"


def show_differences(differing: Differences) -> None:
    """Settings first, without a name; each other group on a line of its own."""
    from steptime.analysis.differences import format_values

    if not differing:
        echo_line("differs", NO_DIFFERENCE)
    name = "differs"
    for group, facts in differing.items():
        texts = []
        for fact, (first, second) in facts.items():
            texts.append(
                f"{fact.replace('_', ' ')} {format_values(first)} → {format_values(second)}"
            )
        if len(texts) > MOST_FACTS:
            texts[MOST_FACTS:] = [f"and {len(texts) - MOST_FACTS} more (--json lists all)"]
        prefix = "" if group == "settings" else f"{group}: "
        echo_line(name, prefix + ", ".join(texts))
        name = ""


def to_document(pair: ComparedPair) -> dict[str, Any]:
    from steptime.analysis.accuracy_loss import loss_sentence
    from steptime.analysis.differences import differences

    return {
        **pair.comparison.to_dict(),
        "a": side_document(pair.a),
        "b": side_document(pair.b),
        "differs": differences(pair.a, pair.b),
        "accuracy_loss": loss_sentence(pair.a, pair.b) or None,
    }


def side_document(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """What was compared, and on what. `accuracy`: None if it was not compared with fp32."""
    from steptime.analysis.accuracy_loss import measured_loss

    last = attempts[-1]
    return {
        "case": last.case.to_dict(),
        "session": last.session,
        "machine": last.machine,
        "software": last.software,
        "accuracy": measured_loss(attempts),
    }


def show_p_value(verdict: Verdict) -> None:
    if verdict.p is None:
        return
    # A live comparison looks several times, each time with a wider interval.
    looks = ""
    if verdict.level is not None and verdict.alpha > 1.001 * (1 - verdict.level):
        looks = ", adjusted for repeated looks"
    echo_line(
        "p-value", f"p = {p_text(verdict)}{looks}; {verdict.alpha:.2g} or less is a difference"
    )


def p_text(verdict: Verdict) -> str:
    return "" if verdict.p is None else _beside(verdict.p, verdict.alpha, "{:.{}g}", 2)


def show_session_deviation(comparison: Comparison) -> None:
    if comparison.session_deviation is None:
        return
    deviation = str(comparison.session_deviation)
    if deviation:
        echo_line("sessions", f"measured at different times: session deviation {deviation}")
    else:
        echo_line("sessions", "measured in one session, in random order")


def verdict_sentence(verdict: Verdict) -> str:
    sentence = VERDICTS.get(verdict.outcome, f"B is {verdict.outcome}")
    return f"{sentence}: ×{ratio_text(verdict)} in time"


def ratio_text(verdict: Verdict, *, level: bool = True) -> str:
    """`0.981 (0.975 … 0.987, 98 % interval)`."""
    if verdict.low is None or verdict.high is None or verdict.level is None:
        return f"{verdict.ratio:.3f}"
    low = _beside(verdict.low, 1.0, "{:.{}f}", 3)
    high = _beside(verdict.high, 1.0, "{:.{}f}", 3)
    interval = f"{low} … {high}"
    if level:
        interval += f", {level_text(verdict.level)}"
    return f"{verdict.ratio:.3f} ({interval})"


def _beside(value: float, limit: float, form: str, digits: int) -> str:
    """With so many digits that rounding does not move the value to the limit or across it."""
    text = form.format(value, digits)
    for more in range(1, 7):
        rounded = float(text)
        if value == limit or (rounded != limit and (rounded < limit) == (value < limit)):
            break
        text = form.format(value, digits + more)
    return text


def level_text(level: float) -> str:
    """`98 % interval`, `99.7 % interval`."""
    return f"{100 * level:.4g} % interval"


def echo_line(name: str, text: str) -> None:
    output.echo_labelled(name, text, MARGIN)
