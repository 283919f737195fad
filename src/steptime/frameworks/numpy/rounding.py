"""Random rounding errors at the points at which a lower precision makes them.

See METHOD.md, certificates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.core.errors import Unsupported, unknown
from steptime.graph import Layer

Array = Any
UNITS = {
    "fp64": 2.0**-53,
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,
    "bf16": 2.0**-8,
    "fp16": 2.0**-11,
    "fp8": 2.0**-4,
}
"""Unit roundoff: half the distance from 1 to the next number."""

# A sum of n products in lanes and blocks of about 64 errs like products that each err by
# √64 roundoffs.
SUMMED = 8.0
# Lower precisions sum in it, and store the weights that are trained in it.
WIDE = "fp32"
# Lanes of a long sum over all positions of a batch: its chains are so many times shorter.
LANES = 8.0
# F(4×4, 3×3) errs so many times as much as the plain sum: 11 in its products, more in its
# transforms. Fast exponentials in the gates of recurrent layers err by about as much.
FAST = 16.0
RECURRENT = ("lstm", "gru", "rnn")
# Errors this large hide those of float32 arithmetic, which is faster.
COARSE = 2.0**-11
# Numbers drawn at once. A prime, so that no two rows of a larger array get the same errors.
DRAWS = 262_139


class Rounding:
    """Multiplies numbers by 1 + e, e uniform within ± the size of the precision's errors.

    A precision with `+fast` is that of a GPU library, which may compute a convolution by
    Winograd's algorithm and gates by fast exponentials. `nearest`: a low precision rounds to the
    nearest number and draws no error. All correct programs round alike there, and cross the same
    kinks, which random errors may all miss."""

    def __init__(self, precision: str, seed: list[int], *, nearest: bool = False) -> None:
        precision, _, algorithm = precision.partition("+")
        if precision == "int8":
            raise Unsupported(
                "int8 is another network; its accuracy loss is reported by its accuracy part."
            )
        if precision not in UNITS:
            raise unknown("precision with rounding errors", precision, UNITS)
        unit = UNITS[precision]
        coarse = unit >= COARSE
        self.wide = SUMMED * UNITS["fp64" if precision == "fp64" else WIDE]
        self.size = max(unit, self.wide)
        self.dtype = np.float32 if coarse else np.float64
        self._nearest_unit = unit if nearest and coarse else None
        self._seed = seed
        self._state_rng = np.random.default_rng([*seed, 1])
        draws = 2 * np.random.default_rng([*seed, 2]).random(DRAWS) - 1
        fast_size = max(self.size, FAST * self.wide) if algorithm else self.size
        self._factors = self._factors_of(self.size, draws)
        self._state_factors = self._factors_of(self.wide, draws)
        self._fast_factors = self._factors_of(fast_size, draws)
        self.begin_pass()

    def _factors_of(self, size: float, draws: Array) -> Array:
        return (1 + size * draws).astype(self.dtype)

    def begin_pass(self) -> None:
        """Starts a new pass, which errs as the one before did.

        The same batch and nearly the same weights are rounded alike, so over the steps of a
        training the errors add up and do not average out."""
        self._pass_rng = np.random.default_rng([*self._seed, 0])

    def __call__(self, values: Array) -> Array:
        return self._round(values, self._factors)

    def round_state(self, values: Array) -> Array:
        """For what lives from step to step: weights and moving statistics."""
        return _multiply_by_draws(values, self._state_factors, self._state_rng)

    def round_number(self, value: float) -> float:
        """For a single number that a program computes without a sum, stored like the state."""
        sign = float(self._state_rng.choice([-2.0, 2.0]))
        return value * (1 + self.wide / SUMMED * sign)

    def _round(self, values: Array, factors: Array) -> Array:
        if self._nearest_unit is None:
            return _multiply_by_draws(values, factors, self._pass_rng)
        return _round_to_nearest(values, self._nearest_unit)

    def _round_sum(self, values: Array, count: float) -> Array:
        """For the gradient of a weight, a sum of `count` terms.

        Long chains of additions err more than anything else does."""
        size = self.wide / SUMMED * math.sqrt(count / LANES)
        if size <= self.size:
            return values
        factors = 1 + size / self.size * (self._factors - 1)
        return _multiply_by_draws(values, factors, self._pass_rng)

    def wrap(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """The function of an op with errors in its inputs, weights and output.

        The gradients that go back through it get errors too."""

        def compute_rounded(
            layer: Layer, weights: dict[str, Array], context: Any, *inputs: Array
        ) -> Any:
            factors = self._fast_factors if _allows_fast(layer) else self._factors

            def err(values: Array) -> Array:
                return self._round(values, factors)

            rounded_weights = {role: err(value) for role, value in weights.items()}
            output, backward = compute(layer, rounded_weights, context, *map(err, inputs))

            def backward_rounded(gradient: Array) -> Any:
                of_inputs, of_weights = backward(err(gradient))
                rounded = {}
                for role, value in of_weights.items():
                    count = gradient.size / len(value)
                    rounded[role] = self._round_sum(err(value), count)
                return [err(value) for value in of_inputs], rounded

            return err(output), backward_rounded

        return compute_rounded


def _allows_fast(layer: Layer) -> bool:
    """Gates, or a convolution of windows that overlap and move by one cell, as Winograd's do."""
    op: Any = layer.op
    if op.name in RECURRENT:
        return True
    if op.name != "conv":
        return False
    return max(op.kernel) > 1 and max(*op.stride, *op.dilation) == 1


def _round_to_nearest(values: Array, unit: float) -> Array:
    """To so many digits, by Veltkamp's splitting of a float32."""
    if values is None or values.dtype.kind != "f":
        return values
    exact = values.astype(np.float32, copy=False)
    raised = exact * np.float32(1 + unit / UNITS["fp32"])
    return raised - (raised - exact)


def _multiply_by_draws(values: Array, factors: Array, rng: np.random.Generator) -> Array:
    """Takes the factors in order from a random one on, again and again.

    Drawing each factor anew would take most of the time."""
    # No gradient, or tokens.
    if values is None or values.dtype.kind != "f":
        return values
    product = np.empty(values.shape, factors.dtype)
    flat_product = product.reshape(-1)
    flat_values = values.reshape(-1)
    start = 0
    first = int(rng.integers(len(factors)))
    while start < flat_values.size:
        chunk = factors[first : first + flat_values.size - start]
        stop = start + chunk.size
        np.multiply(flat_values[start:stop], chunk, out=flat_product[start:stop])
        start = stop
        first = 0
    return product
