"""What a layer's function gets and gives on one context through the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steptime.frameworks.numpy.rounding import Rounding

Array = Any
Gradients = tuple[list[Array], dict[str, Array]]  # of the inputs (None: has none), of the weights
Back = Callable[[Array], Gradients]


@dataclass
class LoweringContext:
    training: bool
    random: np.random.Generator | None = None  # None: dropout is off
    statistics: dict[str, Array] = field(
        default_factory=dict
    )  # new moving averages, by canonical name
    rounding: Rounding | None = None  # None: exact

    def rounded(self, values: Array) -> Array:
        """What a layer keeps inside itself, from one place in time to the next; at its ends nothing need be said."""
        return values if self.rounding is None else self.rounding(values)


def times(values: Array, matrix: Array) -> Array:
    """Every row, whatever they are stacked in, in one product: one for each of a stack would read the matrix anew."""
    return (values.reshape(-1, values.shape[-1]) @ matrix).reshape(
        *values.shape[:-1], matrix.shape[1]
    )


def outer(gradients: Array, values: Array) -> Array:
    """The gradient of a matrix that made `gradients`' rows of `values`' rows."""
    return gradients.reshape(-1, gradients.shape[-1]).T @ values.reshape(-1, values.shape[-1])
