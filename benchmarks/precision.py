"""The tables of docs/precision.md of what `steptime run precision` stored: `python benchmarks/precision.py STORE`.

A row for each way to compute, a column for each batch; behind a time those of its processes. Then what cannot be
measured, with its reason, and how many results have which doubt."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from steptime.analysis.result import Result, result
from steptime.cli.render import accuracy_loss
from steptime.core.case import Case
from steptime.core.format import digits, percent
from steptime.core.record import Record
from steptime.store.folder import FolderStore

Way = tuple[str, str, str]  # framework, mode, precision
HEAD = ("framework", "mode", "precision")
PRECISIONS = ("fp32", "bf16", "int8")


def way(case: Case) -> Way:
    return case.framework, case.mode, case.precision


def milliseconds(found: Result) -> str:
    each = ", ".join(
        digits(1e3 * part["typical_time_seconds"]) for part in found.spread.each_process
    )
    return f"{digits(1e3 * found.times.typical_time_seconds.value)} ({each})"


def table(records: Sequence[Record]) -> Iterable[str]:
    """Of one network: times, the gain on fp32 in the same framework and mode at the largest batch, and the price."""
    found = {(*way(record.case), record.case.batch_size): result(record) for record in records}
    if len(found) < len(records):
        sys.exit(
            "Some results differ in more than framework, mode, precision and batch: use a store of one run."
        )
    prices = {way(record.case): cost(record) for record in sorted(records, key=compared)}
    batches = sorted({record.case.batch_size for record in records})
    costs = list(dict.fromkeys(name for each in prices.values() for name in each))
    names = [*HEAD, *(f"batch {size}, ms" for size in batches), "against fp32", *costs]
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(HEAD) + "--:|" * (len(names) - len(HEAD))
    for one in sorted(prices, key=lambda it: (it[0], it[1], PRECISIONS.index(it[2]))):
        times = [
            milliseconds(found[*one, size]) if (*one, size) in found else "" for size in batches
        ]
        cells = [
            *one,
            *times,
            gain(found, one, batches),
            *(prices[one].get(name, "") for name in costs),
        ]
        yield f"| {' | '.join(cells)} |"


def gain(found: dict[tuple[str, str, str, int], Result], one: Way, batches: Sequence[int]) -> str:
    full = (*one[:2], "fp32")
    sizes = [size for size in batches if (*one, size) in found and (*full, size) in found]
    if one == full or not sizes:
        return ""
    low, high = (found[*key, sizes[-1]].typical_time_seconds.value for key in (one, full))
    return f"{high / low:.2f}×" + (f" (batch {sizes[-1]})" if sizes[-1] != batches[-1] else "")


def compared(record: Record) -> int:
    """Images whose answers were compared: small batches have time for fewer, so the largest batch speaks."""
    return record.accuracy["samples"] if record.accuracy else 0


def cost(record: Record) -> dict[str, str]:
    if not (told := record.accuracy):
        return {}
    if not (task := told["task"]):
        return {
            "largest logit error": percent(told["largest_relative_error"]),
            "mean": percent(told["mean_relative_error"]),
        }
    low, high = (f"{100 * end:+.2f}" for end in task["change_interval"])
    change = f"{100 * task['change']:+.2f} ({low} … {high})"
    return {
        "top-1 agrees": accuracy_loss.columns(record)["top-1 agrees"],
        "accuracy, and its change in points": f"{accuracy_loss.columns(record)['task']}, {change}".replace(
            "-", "−"
        ),
    }


def main(path: str) -> None:
    if not (records := FolderStore(path).records()):
        sys.exit(f"{path} has no results; `steptime --store {path} run precision` makes them.")
    good = [record for record in records if record.measurements]
    print(f"{len(good)} of {len(records)} cases measured")
    for network in dict.fromkeys(record.case.workload for record in records):
        print(f"\n### {network}\n")
        print("\n".join(table([record for record in good if record.case.workload == network])))
    print()
    why = {
        (*way(record.case), record.failures[-1].reason)
        for record in records
        if not record.measurements
    }
    print("\n".join(f"- {' '.join(one)}: {reason}" for *one, reason in sorted(why)))
    print(Counter(flag.name for record in good for flag in result(record).flags))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results")
