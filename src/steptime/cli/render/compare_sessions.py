"""Two stored sessions, case by case: which differences to believe, and the mean over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.comparison import TOO_FEW as TOO_FEW_SENTENCE
from steptime.cli.render.comparison import ratio_text
from steptime.cli.render.format import differing_settings, plural
from steptime.cli.stored import latest_measured
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.suite import RecordPair, Suite
    from steptime.core.record import Record
    from steptime.store.readable import ReadableStore


def compare_sessions(
    first: Sequence[Record],
    second: Sequence[Record],
    store: ReadableStore,
    *,
    force: str,
    json: bool,
) -> None:
    from steptime.analysis.compare import TOO_FEW
    from steptime.analysis.suite import compare_suite, match_records

    pairs = match_records(first, second)
    if not pairs:
        raise SteptimeError(
            "No case of A has a partner in B. "
            "Partners are equal in all settings except those that are compared."
        )
    reasons = _different_work(pairs, store, force)
    suite = compare_suite(pairs)
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
    few = sum(TOO_FEW in row.remarks for row in suite.rows)
    if few:
        output.echo(f"note: {few} of {len(pairs)} cases: {TOO_FEW_SENTENCE}")
    if unmatched:
        cases = plural(unmatched, "measured case")
        output.echo(f"note: {cases} without a partner on the other side")
    for reason in reasons:
        output.echo(f"note: force ({force}): {reason}")


def _different_work(pairs: Sequence[RecordPair], store: ReadableStore, force: str) -> list[str]:
    from steptime.analysis.certificates import TASK, read_certificates
    from steptime.analysis.compare import different_work
    from steptime.run.compare import Refused

    certificates = read_certificates(store.attempts(TASK))
    # A dictionary as an ordered set: cases often share a reason.
    reasons: dict[str, None] = {}
    for a, b in pairs:
        for reason in different_work(latest_measured(a), latest_measured(b), certificates):
            reasons[reason] = None
    if reasons and not force:
        raise Refused(list(reasons))
    return list(reasons)


def _document(suite: Suite, pairs: Sequence[RecordPair]) -> dict[str, Any]:
    rows = []
    for row, (a, b) in zip(suite.rows, pairs, strict=True):
        cases = {"a": {"case": a.case.to_dict()}, "b": {"case": b.case.to_dict()}}
        rows.append(row.to_dict() | cases)
    first, second = pairs[0]
    return {
        "a": {"session": first.session},
        "b": {"session": second.session},
        "geometric_mean": vars(suite.mean),
        "false_discovery_rate": 0.05,
        "rows": rows,
    }


def _show(suite: Suite, pairs: Sequence[RecordPair]) -> None:
    verdicts = Counter(row.verdict.outcome for row in suite.rows)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    mean = f"×{ratio_text(suite.mean)} in time, geometric mean"
    output.echo(f"B over A, {len(pairs)} cases: {mean}; {counts}.")
    output.echo()
    names = differing_settings([record.case for pair in pairs for record in pair])
    rows = []
    for row, (a, b) in zip(suite.rows, pairs, strict=True):
        settings = [_setting_text(a, b, name) for name in names]
        rows.append([*settings, f"×{ratio_text(row.verdict)}", row.verdict.outcome])
    heads = [name.replace("_", " ") for name in names]
    output.print_table([*heads, "B's time over A's", "B is"], rows)
    output.echo("False discovery rate 5 % (Benjamini-Hochberg) over the rows faster or slower.")
    output.echo(
        "Measured at different times: all intervals include the usual change between sessions."
    )


def _setting_text(a: Record, b: Record, name: str) -> str:
    first, second = getattr(a.case, name), getattr(b.case, name)
    return str(first) if first == second else f"{first} → {second}"
