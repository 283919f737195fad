"""Two stored sessions, case by case: which differences to believe, and the mean over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.comparison import TOO_FEW as TOO_FEW_SENTENCE
from steptime.cli.render.comparison import (
    echo_line,
    level_text,
    p_text,
    ratio_text,
    show_differences,
    show_session_deviation,
    side_document,
)
from steptime.cli.render.format import differing_settings, plural
from steptime.cli.render.table import Column, print_table, quantity
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.differences import Differences
    from steptime.analysis.stored import RecordPair, Suite
    from steptime.core.record import Attempt, Record
    from steptime.store.readable import ReadableStore


def compare_sessions(
    first: Sequence[Record],
    second: Sequence[Record],
    store: ReadableStore,
    *,
    force: str,
    json: bool,
) -> None:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.analysis.stored import match_records
    from steptime.cli.stored_comparison import compare_pairs, refuse_different_work

    pairs = match_records(first, second)
    if not pairs:
        raise SteptimeError(
            "No case of A has a partner in B. "
            "Partners are equal in all settings except those that are compared."
        )
    certificates = read_certificates(store.attempts(TASK))
    reasons = refuse_different_work(pairs, certificates, force)
    suite = compare_pairs(pairs, store)
    # Each pair uses one record of both sides.
    unmatched = len(first) + len(second) - 2 * len(pairs)
    if json:
        document = _document(suite, pairs)
        document["unmatched"] = unmatched
        document["force"] = force if reasons else ""
        document["different_work"] = reasons
        output.print_json(document)
        return
    _show(suite, pairs)
    if unmatched:
        cases = plural(unmatched, "measured case")
        output.echo(f"note: {cases} without a partner on the other side")
    for reason in reasons:
        output.echo(f"note: force ({force}): {reason}")


def _document(suite: Suite, pairs: Sequence[RecordPair]) -> dict[str, Any]:
    from steptime.analysis.accuracy_loss import loss_sentence

    rows = []
    for row, pair in zip(suite.rows, pairs, strict=True):
        a, b = _sides(pair)
        facts = {"a": side_document(a), "b": side_document(b)}
        loss = loss_sentence(a, b) or None
        rows.append(row.to_dict() | facts | {"accuracy_loss": loss})
    first, second = pairs[0]
    return {
        "a": {"session": first.session},
        "b": {"session": second.session},
        "differs": _common_differences(pairs),
        "geometric_mean": vars(suite.mean),
        "false_discovery_rate": 0.05,
        "rows": rows,
    }


def _sides(pair: RecordPair) -> tuple[list[Attempt], list[Attempt]]:
    from steptime.analysis.session_deviation import measured_attempts

    return measured_attempts(pair[0]), measured_attempts(pair[1])


def _common_differences(pairs: Sequence[RecordPair]) -> Differences:
    """Between all processes of A and all of B. The table shows the settings of each case."""
    from steptime.analysis.differences import differences

    a_attempts: list[Attempt] = []
    b_attempts: list[Attempt] = []
    for pair in pairs:
        a, b = _sides(pair)
        a_attempts += a
        b_attempts += b
    return differences(a_attempts, b_attempts)


def _show(suite: Suite, pairs: Sequence[RecordPair]) -> None:
    verdicts = Counter(row.verdict.outcome for row in suite.rows)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    mean = f"×{ratio_text(suite.mean)} in time, geometric mean"
    output.echo(f"B over A, {plural(len(pairs), 'case')}: {mean}; {counts}.")
    output.echo()
    _show_table(suite, pairs)
    show_differences(_common_differences(pairs))
    show_session_deviation(suite.rows[0])
    _show_losses(pairs)
    _show_notes(suite)


def _show_table(suite: Suite, pairs: Sequence[RecordPair]) -> None:
    names = differing_settings([record.case for pair in pairs for record in pair])
    rows = []
    for row, (a, b) in zip(suite.rows, pairs, strict=True):
        settings = [_setting_text(a, b, name) for name in names]
        ratio = f"×{ratio_text(row.verdict, level=False)}"
        rows.append([*settings, ratio, p_text(row.verdict), row.verdict.outcome])
    columns = [Column(name.replace("_", " ")) for name in names]
    columns += [Column("B's time over A's", stays=True), quantity("p", drop=1)]
    columns.append(Column("B is", stays=True))
    print_table(columns, rows)


def _show_losses(pairs: Sequence[RecordPair]) -> None:
    """What a lower precision costs, once if it costs the same in all cases."""
    from steptime.analysis.accuracy_loss import loss_sentence

    losses: dict[str, str] = {}
    for pair in pairs:
        loss = loss_sentence(*_sides(pair))
        if loss:
            losses.setdefault(loss, pair[1].case.label)
    for loss, label in losses.items():
        echo_line("accuracy", f"{label}: {loss}")


def _show_notes(suite: Suite) -> None:
    from steptime.analysis.stored import TOO_FEW

    levels = [row.verdict.level for row in suite.rows if row.verdict.level is not None]
    if levels:
        output.echo(
            f"Each row has its {level_text(levels[0])}. A row is faster or slower if p is at most "
            "0.05; p is adjusted for a false discovery rate of 5 % (Benjamini-Hochberg)."
        )
    few = sum(TOO_FEW in row.remarks for row in suite.rows)
    if few:
        output.echo(f"note: {few} of {len(suite.rows)} cases: {TOO_FEW_SENTENCE}")


def _setting_text(a: Record, b: Record, name: str) -> str:
    first, second = getattr(a.case, name), getattr(b.case, name)
    return str(first) if first == second else f"{first} → {second}"
