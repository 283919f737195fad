"""The headline of a report: what a set of results says, or why nothing can be said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steptime.analysis.compare import LIKELY
from steptime.core.format import digits
from steptime.index.catalogue import ALONE, DIMENSIONS, METRICS, format_value
from steptime.index.certified import CERTIFIED, certification
from steptime.index.matching import WORK, Pair, Table
from steptime.index.query import Query, describe_condition
from steptime.index.rows import Row
from steptime.index.stored_pairs import compare_rows
from steptime.index.workspace import Workspace

# With fewer configurations a mean over them says too little.
FEWEST_FOR_MEAN = 6
NAMED = ("model", "operator", "phase", "framework", "mode", "precision", "device", "submitter")


def headline(workspace: Workspace, query: Query, rows: Sequence[Row]) -> str:
    """Compares two sides if the query has them and both do the same work; else the best result."""
    # Rows may lack the metric: a listing has every run of the query.
    valued = [row for row in rows if row.get(query.y) is not None]
    if not valued:
        return "No results match this query."
    dimension = compared_dimension(query)
    counts = Counter(row[dimension] for row in valued if row[dimension]) if dimension else Counter()
    sides = [value for value, _ in counts.most_common(2)]
    if len(sides) == 2:
        a_rows = [row for row in valued if row[dimension] == sides[0]]
        b_rows = [row for row in valued if row[dimension] == sides[1]]
        table = compare_rows(workspace, query.y, a_rows, b_rows)
        if table.pairs and not table.different_work:
            return _compare(workspace, query.y, (sides[0], sides[1]), table)
    return _best(query, valued)


def compared_dimension(query: Query) -> str:
    """What the query sets side by side: its first colour, or its axis, if that says how."""
    for name in (*query.by, query.x):
        if name not in DIMENSIONS or DIMENSIONS[name].number:
            continue
        if name not in (*WORK, *ALONE):
            return name
    return ""


def _compare(workspace: Workspace, metric: str, sides: tuple[str, str], table: Table) -> str:
    """No ratio if frameworks are not certified: their different speeds may be different work."""
    proofs = certification(workspace, table)
    refused = [reason for reason in proofs.values() if not reason.startswith(CERTIFIED)]
    if refused:
        return _refusal(sides, refused, len(table.pairs))
    if 1 < len(table.pairs) < FEWEST_FOR_MEAN:
        text = _count_wins(metric, sides, table)
    else:
        text = _ratio(metric, sides, table)
    if proofs:
        text += " Both are certified to compute the same."
    return text + _losses(table)


def _losses(table: Table) -> str:
    """A ratio of two precisions never stands without what the lower one costs."""
    losses = {pair.accuracy_loss: pair for pair in table.pairs if pair.accuracy_loss}
    if not losses:
        return ""
    text = next(iter(losses))
    if len(losses) > 1:
        text = f"{len(losses)} different accuracy losses, for example {text}"
    return f" Note {text}."


def _refusal(sides: tuple[str, str], refused: Sequence[str], count: int) -> str:
    reason = refused[0].removeprefix("not certified: ").rstrip(".")
    if count == 1:
        common = "the only common configuration is"
    elif len(refused) == 1:
        common = f"1 of {count} common configurations is"
    else:
        common = f"{len(refused)} of {count} common configurations are"
    return (
        f"No verdict on {sides[0]} against {sides[1]}: "
        f"{common} not certified to compute the same ({reason})."
    )


def _ratio(metric: str, sides: tuple[str, str], table: Table) -> str:
    """The ratio of the only configuration, or the geometric mean of many."""
    less, more = sides
    ratio, low, high = table.mean or (1.0, None, None)
    over = f"; geometric mean over {len(table.pairs)} configurations that both have"
    if len(table.pairs) == 1:
        pair = table.pairs[0]
        ratio, low, high = pair.ratio, pair.low, pair.high
        over = ""
    # The larger side comes first, whichever is better.
    if ratio < 1:
        less, more = more, less
        ratio = 1 / ratio
        low, high = high and 1 / high, low and 1 / low
    # Without an interval there is a ratio but no verdict.
    interval = f"{digits(low)} … {digits(high)}" if low and high else "no interval"
    better = more if METRICS[metric].better == "more" else less
    likely = LIKELY if table.deviations else ""
    verdict = "no difference is shown"
    if low is not None and low > 1:
        verdict = f"{better} is {likely}better"
    label = METRICS[metric].label
    times = f"{label} of {more} is {digits(ratio)} times that of {less}"
    return f"{times} ({interval}{over}): {verdict}."


def _count_wins(metric: str, sides: tuple[str, str], table: Table) -> str:
    a, b = sides
    label = METRICS[metric].label
    wins = Counter(pair.verdict.removeprefix(LIKELY) for pair in table.pairs)
    ratios = [pair.ratio for pair in table.pairs]
    times = f"{digits(min(ratios))} … {digits(max(ratios))} times that of {a}"
    undecided = len(ratios) - wins["better"] - wins["worse"]
    if undecided == len(ratios):
        # Ratios that nothing was concluded from come first: they are all there is.
        why = _why_undecided(table)
        return (
            f"{label} of {b} is {times} in {len(ratios)} configurations that both have: "
            f"no difference is shown ({why})."
        )
    text = f"Of {len(ratios)} configurations that both have, {b} has the better "
    text += f"{label.lower()} in {wins['better']} and {a} in {wins['worse']}"
    if undecided:
        text += f", {undecided} are undecided ({_why_undecided(table)})"
    return f"{text}: {times}."


def _why_undecided(table: Table) -> str:
    """Undecided by the numbers, or for want of an interval, or because a result is invalid."""
    reasons = Counter(_why_without_verdict(pair) for pair in table.pairs)
    del reasons[""]
    if len(reasons) == 1:
        return next(iter(reasons))
    return ", ".join(f"{count}: {reason}" for reason, count in reasons.most_common())


def _why_without_verdict(pair: Pair) -> str:
    if pair.verdict.removeprefix(LIKELY) in ("better", "worse"):
        return ""
    if pair.refused:
        return "a result is invalid"
    return "no interval: too few processes" if pair.low is None else "the interval contains 1"


def _best(query: Query, rows: Sequence[Row]) -> str:
    """Of the query's conditions, which are named: other charts may show larger values."""
    metric = query.y
    chosen = METRICS[metric]
    better = max if chosen.better == "more" else min
    best = better(rows, key=lambda row: row[metric])
    low = best.get(f"{metric}_low")
    high = best.get(f"{metric}_high")
    interval = f" ({digits(low)} … {digits(high)})" if low and high else ""
    unit = chosen.unit_of(best.get("unit") or "")
    facts = [str(best[name]) for name in NAMED if best.get(name)]
    if best.get("replica_batch"):
        facts.append(f"batch {format_value(best['replica_batch'])}")
    value = f"{digits(best[metric])} {unit}{interval}"
    conditions = [describe_condition(key, *values) for key, values in query.where]
    subject = f"best {chosen.label.lower()} is {value}: {', '.join(facts)}."
    if conditions:
        return f"Of results with {', '.join(conditions)}, the {subject}"
    return f"The {subject}"
