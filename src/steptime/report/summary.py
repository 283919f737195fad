"""The sentence that matters: what a set of results says, or why nothing can be said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steptime.core.format import digits
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, word
from steptime.index.matching import WORK, Table, matched
from steptime.index.query import Query
from steptime.index.rows import Row
from steptime.web.context import Desk
from steptime.web.pages.compare import certified

ENOUGH = 6  # configurations for a mean over them
TOLD = ("model", "operator", "phase", "framework", "mode", "precision", "device", "submitter")


def headline(desk: Desk, query: Query, rows: Sequence[Row]) -> str:
    """Two sides of a comparison where the question has them and both do the same work; else the best result."""
    valued = [row for row in rows if row.get(query.y) is not None]
    if not valued:
        return "Nothing fits the question."
    name = compared(query)
    sides = (
        [value for value, _ in Counter(row[name] for row in valued if row[name]).most_common(2)]
        if name
        else []
    )
    if len(sides) == 2:
        a, b = ([row for row in valued if row[name] == value] for value in sides)
        table = matched(query.y, a, b)
        if table.pairs and not table.different_work:
            return _compared(desk, query.y, (sides[0], sides[1]), table)
    return _best(query.y, valued)


def compared(query: Query) -> str:
    """What the question sets side by side: its first colour, or its axis, where that says how, not what."""
    names = [
        name for name in (*query.by, query.x) if name in DIMENSIONS and not DIMENSIONS[name].number
    ]
    return next((name for name in names if name not in (*WORK, *ALONE)), "")


def _compared(desk: Desk, metric: str, sides: tuple[str, str], table: Table) -> str:
    """No ratio where frameworks are not certified: their different speeds may be different work."""
    proofs, count = certified(desk, table), len(table.pairs)
    if refused := [why for why in proofs.values() if not why.startswith("certified")]:
        why = refused[0].removeprefix("not certified: ").rstrip(".")
        common = (
            f"{len(refused)} of {count} configurations that both have"
            if count > 1
            else "what both have"
        )
        return f"Who is faster, {' or '.join(sides)}, is not said: {common} is not certified to compute the same ({why})."
    text = _wins(metric, sides, table) if 1 < count < ENOUGH else _ratio(metric, sides, table)
    return f"{text} Both are certified to compute the same." if proofs else text


def _ratio(metric: str, sides: tuple[str, str], table: Table) -> str:
    """Of the only configuration, or their geometric mean where they are enough to say how sure that is."""
    pair, count = table.pairs[0], len(table.pairs)
    ratio, low, high = (
        (pair.ratio, pair.low, pair.high) if count == 1 else table.mean or (1.0, None, None)
    )
    if ratio < 1:
        sides, ratio, low, high = (
            (sides[1], sides[0]),
            1 / ratio,
            high and 1 / high,
            low and 1 / low,
        )
    less, more = sides
    sure = f"{digits(low)} … {digits(high)}" if low and high else "no interval"
    over = "" if count == 1 else f"; geometric mean over {count} configurations that both have"
    better = more if METRICS[metric].better == "more" else less
    verdict = f"{better} is better" if low is not None and low > 1 else "no difference is shown"
    return f"{METRICS[metric].label} of {more} is {digits(ratio)} times that of {less} ({sure}{over}): {verdict}."


def _wins(metric: str, sides: tuple[str, str], table: Table) -> str:
    wins, ratios = (
        Counter(pair.verdict for pair in table.pairs),
        [pair.ratio for pair in table.pairs],
    )
    undecided = len(ratios) - wins["better"] - wins["worse"]
    text = f"Of {len(ratios)} configurations that both have, {sides[1]} has the better {METRICS[metric].label.lower()} in "
    text += f"{wins['better']} and {sides[0]} in {wins['worse']}{f', {undecided} are undecided' if undecided else ''}"
    return f"{text}: {digits(min(ratios))} … {digits(max(ratios))} times that of {sides[0]}."


def _best(metric: str, rows: Sequence[Row]) -> str:
    known = METRICS[metric]
    best = (max if known.better == "more" else min)(rows, key=lambda row: row[metric])
    low, high = best.get(f"{metric}_low"), best.get(f"{metric}_high")
    sure = f" ({digits(low)} … {digits(high)})" if low and high else ""
    unit = known.unit_of(best.get("unit") or "")
    words = [str(best[name]) for name in TOLD if best.get(name)]
    words += [f"batch {word(best['replica_batch'])}"] if best.get("replica_batch") else []
    return f"The best {known.label.lower()} is {digits(best[metric])} {unit}{sure}: {', '.join(words)}."
