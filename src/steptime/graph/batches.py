"""Any number of samples through what takes batches of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Batch = dict[str, Any]


def of_size(batches: Iterable[Batch], size: int, most: int) -> Iterator[tuple[Batch, int]]:
    """Each with how many of its samples count, `most` in all: a last one that is too small is filled up by repeating,
    because to trace or compile for another size would be another program."""
    import numpy as np

    left = most
    for batch in batches:
        for first in range(0, len(batch["input"]), size):
            if left <= 0:
                return
            own = min(size, left, len(batch["input"]) - first)
            places = first + np.arange(size) % own
            yield {name: values[places] for name, values in batch.items()}, own
            left -= own


def in_own_size(compute: Callable[[Any], Any], values: Any, size: int) -> Any:
    """The outputs of any number of inputs, computed `size` at a time."""
    import numpy as np

    parts = [
        compute(batch["input"])[:own]
        for batch, own in of_size([{"input": values}], size, len(values))
    ]
    return np.concatenate(parts)
