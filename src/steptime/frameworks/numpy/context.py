"""What the function of an op gets, and what it returns, in one pass through the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steptime.frameworks.numpy.rounding import Rounding

Array = Any
Weights = dict[str, Array]  # by role, such as "weight" and "bias"
Gradients = tuple[list[Array], Weights]  # of the inputs (None: has none), and of the weights
Backward = Callable[[Array], Gradients]  # from the gradient of the output
Result = tuple[Array, Backward]  # the output of an op, and its backward function


@dataclass
class LoweringContext:
    training: bool
    # None: dropout is off.
    rng: np.random.Generator | None = None
    # New moving averages, by canonical name.
    statistics: dict[str, Array] = field(default_factory=dict)
    # None: exact.
    rounding: Rounding | None = None

    def round(self, values: Array) -> Array:
        """For what an op holds inside, from one step in time to the next.

        Inputs and outputs of ops are rounded by `Rounding.wrap`."""
        return values if self.rounding is None else self.rounding(values)


def unary(output: Array, input_gradient: Callable[[Array], Array]) -> Result:
    """The result of an op with one input and no weights."""

    def backward(gradient: Array) -> Gradients:
        return [input_gradient(gradient)], {}

    return output, backward


def sigmoid(x: Array) -> Array:
    """By tanh, which does not overflow for large negative x."""
    return 0.5 * (1 + np.tanh(x / 2))


def multiply_rows(values: Array, matrix: Array) -> Array:
    """values @ matrix as one product, whatever axes the rows are stacked in.

    NumPy would make a product for each matrix of a stack, and read `matrix` again for each."""
    product = values.reshape(-1, values.shape[-1]) @ matrix
    return product.reshape(*values.shape[:-1], matrix.shape[1])


def matrix_gradient(gradients: Array, values: Array) -> Array:
    """The gradient of a matrix that maps rows of `values` to rows of `gradients`."""
    rows = gradients.reshape(-1, gradients.shape[-1])
    return rows.T @ values.reshape(-1, values.shape[-1])
