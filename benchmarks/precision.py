"""The tables of docs/precision.md, from a store: `python benchmarks/precision.py STORE`.

`steptime run precision` fills the store. There is a row for each framework, mode and precision, and
a column for each batch size; the times of the processes follow the typical time. Then come the
cases that could not be measured, with the reason, and how many results have which flag."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steptime.analysis.result import Result, result
from steptime.cli.render import accuracy_loss
from steptime.core.case import Case
from steptime.core.format import digits, percent
from steptime.core.record import Record
from steptime.store.folder import FolderStore

PRECISIONS = ("fp32", "bf16", "int8")


class Method(NamedTuple):
    framework: str
    mode: str
    precision: str

    @classmethod
    def of_case(cls, case: Case) -> Method:
        return cls(case.framework, case.mode, case.precision)

    @property
    def order(self) -> tuple[str, str, int]:
        return self.framework, self.mode, PRECISIONS.index(self.precision)


# The results of one network, by method and batch size.
Results = dict[tuple[Method, int], Result]


def format_times(measured: Result | None) -> str:
    """In milliseconds: the typical time, and those of the processes."""
    if measured is None:
        return ""
    processes = [
        digits(1e3 * process["typical_time_seconds"]) for process in measured.spread.each_process
    ]
    return f"{digits(1e3 * measured.times.typical_time_seconds.value)} ({', '.join(processes)})"


def table(records: Sequence[Record]) -> Iterable[str]:
    """Of one network: times, the speed-up over fp32 in the same framework and mode at the largest
    batch, and the accuracy loss."""
    results: Results = {}
    for record in records:
        results[Method.of_case(record.case), record.case.batch_size] = result(record)
    if len(results) < len(records):
        sys.exit(
            "Some results differ in more than framework, mode, precision and batch: "
            "use a store of one run."
        )
    losses: dict[Method, dict[str, str]] = {}
    # Small batches have time to compare fewer images, so the largest batch comes last and counts.
    for record in sorted(records, key=compared_images):
        losses[Method.of_case(record.case)] = format_loss(record)
    batches = sorted({record.case.batch_size for record in records})
    loss_columns = list(dict.fromkeys(column for loss in losses.values() for column in loss))
    time_columns = [f"batch {size}, ms" for size in batches]
    # Text is aligned to the left, numbers to the right.
    columns = [*Method._fields, *time_columns, "against fp32", *loss_columns]
    texts = len(Method._fields)
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * texts + "--:|" * (len(columns) - texts)
    for method in sorted(losses, key=lambda method: method.order):
        times = [format_times(results.get((method, size))) for size in batches]
        loss = [losses[method].get(column, "") for column in loss_columns]
        cells = [*method, *times, speed_up(results, method, batches), *loss]
        yield f"| {' | '.join(cells)} |"


def speed_up(results: Results, method: Method, batches: Sequence[int]) -> str:
    # Only equal batches can be compared.
    full = method._replace(precision="fp32")
    sizes = [size for size in batches if (method, size) in results and (full, size) in results]
    if method == full or not sizes:
        return ""
    largest = sizes[-1]
    seconds = results[method, largest].times.typical_time_seconds.value
    full_seconds = results[full, largest].times.typical_time_seconds.value
    text = f"{full_seconds / seconds:.2f}×"
    return text if largest == batches[-1] else f"{text} (batch {largest})"


def compared_images(record: Record) -> int:
    return record.accuracy["samples"] if record.accuracy else 0


def format_loss(record: Record) -> dict[str, str]:
    loss = record.accuracy
    if not loss:
        return {}
    task = loss["task"]
    if not task:
        return {
            "largest logit error": percent(loss["largest_relative_error"]),
            "mean": percent(loss["mean_relative_error"]),
        }
    columns = accuracy_loss.columns(record)
    low, high = task["change_interval"]
    change = f"{100 * task['change']:+.2f} ({100 * low:+.2f} … {100 * high:+.2f})"
    return {
        "top-1 agrees": columns["top-1 agrees"],
        "accuracy, and its change in points": f"{columns['task']}, {change}".replace("-", "−"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", nargs="?", default="results")
    path = parser.parse_args().store
    records = FolderStore(path).records()
    if not records:
        sys.exit(f"{path} has no results; `steptime --store {path} run precision` makes them.")
    measured = [record for record in records if record.measurements]
    print(f"{len(measured)} of {len(records)} cases measured")
    for network in dict.fromkeys(record.case.workload for record in records):
        print(f"\n### {network}\n")
        print("\n".join(table([record for record in measured if record.case.workload == network])))
    print()
    failures = set()
    for record in records:
        if not record.measurements:
            method = " ".join(Method.of_case(record.case))
            failures.add(f"- {method}: {record.failures[-1].reason}")
    print("\n".join(sorted(failures)))
    print(Counter(flag.name for record in measured for flag in result(record).flags))


if __name__ == "__main__":
    main()
