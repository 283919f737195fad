"""Batches of any size, for programs that take batches of one size only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Batch = dict[str, Any]


def batches_of_size(batches: Iterable[Batch], size: int, limit: int) -> Iterator[tuple[Batch, int]]:
    """Batches of this size, each with the number of its samples that count; `limit` in all.

    A last batch that is too small is filled up by repeating its samples, because tracing or
    compiling for another size would make another program."""
    # Imported late: `steptime list` and `show` run without NumPy.
    import numpy as np

    remaining = limit
    for batch in batches:
        for first in range(0, len(batch["input"]), size):
            if remaining <= 0:
                return
            count = min(size, remaining, len(batch["input"]) - first)
            # Repeats the samples that count, up to the size of the batch.
            indices = first + np.arange(size) % count
            yield {name: values[indices] for name, values in batch.items()}, count
            remaining -= count


def compute_in_batches(compute: Callable[[Any], Any], values: Any, size: int) -> Any:
    """The outputs of any number of inputs, computed `size` at a time."""
    import numpy as np

    outputs = []
    for batch, count in batches_of_size([{"input": values}], size, len(values)):
        outputs.append(compute(batch["input"])[:count])
    return np.concatenate(outputs)
