"""Two stored sessions, case by case: which differences to believe, and the mean over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.format import differing
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.compare import Verdict
    from steptime.analysis.suite import RecordPair, Suite
    from steptime.core.record import Attempt, Record
    from steptime.store.readable import ReadableStore

FEW = "too few processes to decide anything; run both again with --preset standard, which has six of each or more"


def compare_sessions(
    first: Sequence[Record],
    second: Sequence[Record],
    store: ReadableStore,
    *,
    force: str,
    json: bool,
) -> None:
    from steptime.analysis.compare import TOO_FEW
    from steptime.analysis.suite import matched, stored_suite

    pairs = matched(first, second)
    if not pairs:
        raise SteptimeError(
            "No case of A has a partner in B: equal in all settings but those that are compared."
        )
    reasons = _different(pairs, store, force)
    suite = stored_suite(pairs)
    alone = len(first) + len(second) - 2 * len(pairs)
    if json:
        noted = {
            "without_partner": alone,
            "force": force if reasons else "",
            "different_work": reasons,
        }
        output.document(_document(suite, pairs) | noted)
        return
    _show(suite, pairs)
    if few := sum(TOO_FEW in row.remarks for row in suite.rows):
        output.say(f"note: {few} of {len(pairs)} cases: {FEW}")
    if alone:
        output.say(
            f"note: {alone} measured case{'s' * (alone > 1)} without a partner on the other side"
        )
    for reason in reasons:
        output.say(f"note: force ({force}): {reason}")


def latest(record: Record) -> Attempt:
    """The newest that was measured: it tells what the work was."""
    return next(attempt for attempt in reversed(record.attempts) if attempt.measurement)


def _different(pairs: Sequence[RecordPair], store: ReadableStore, force: str) -> list[str]:
    from steptime.analysis.certificates import TASK, certificates
    from steptime.analysis.compare import different_work
    from steptime.run.compare import Refused

    known = certificates(store.attempts(TASK))
    found = (different_work(latest(a), latest(b), known) for a, b in pairs)
    reasons = list(dict.fromkeys(reason for reasons in found for reason in reasons))
    if reasons and not force:
        raise Refused(reasons)
    return reasons


def _document(suite: Suite, pairs: Sequence[RecordPair]) -> dict[str, Any]:
    rows = [
        {**row.to_dict(), "a": {"case": a.case.to_dict()}, "b": {"case": b.case.to_dict()}}
        for row, (a, b) in zip(suite.rows, pairs, strict=True)
    ]
    sides = {"a": {"session": pairs[0][0].session}, "b": {"session": pairs[0][1].session}}
    return {**sides, "geometric_mean": vars(suite.mean), "false_discovery_rate": 0.05, "rows": rows}


def _show(suite: Suite, pairs: Sequence[RecordPair]) -> None:
    words = Counter(row.verdict.word for row in suite.rows)
    counts = ", ".join(f"{count} {word}" for word, count in words.most_common())
    output.say(
        f"B over A, {len(pairs)} cases: ×{_ratio(suite.mean)} in time, geometric mean; {counts}."
    )
    output.say()
    names = differing([record.case for pair in pairs for record in pair])
    cells = [
        [*(_setting(a, b, name) for name in names), f"×{_ratio(row.verdict)}", row.verdict.word]
        for row, (a, b) in zip(suite.rows, pairs, strict=True)
    ]
    output.table([*(name.replace("_", " ") for name in names), "B's time over A's", "B is"], cells)
    output.say("Of the rows called faster or slower 5 % may be wrong (Benjamini and Hochberg).")
    output.say(
        "Measured at different times: the usual change between sessions is in the intervals, the mean's too."
    )


def _setting(a: Record, b: Record, name: str) -> str:
    first, second = getattr(a.case, name), getattr(b.case, name)
    return str(first) if first == second else f"{first} → {second}"


def _ratio(verdict: Verdict) -> str:
    interval = "" if verdict.low is None else f" ({verdict.low:.3f} … {verdict.high:.3f})"
    return f"{verdict.ratio:.3f}{interval}"
