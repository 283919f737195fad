"""Rounding errors, drawn at random and put where a computer of lower precision makes them (METHOD.md, certificates)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.core.errors import Unsupported, unknown

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
SUMMED = 8.0  # a sum of n products in lanes and blocks of about 64 errs like products that each err by √64 roundoffs
WIDE = "fp32"  # lower precisions sum in it, and keep the weights that are trained in it
LANES = (
    8.0  # of a long sum, over all places of a batch: its chains are so many times shorter than it
)
WINOGRAD = 16.0  # F(4×4, 3×3) errs so many times as much as the plain sum: 11 in its products, more in its transforms
COARSE = 2.0**-11  # errors so large hide those of float32 arithmetic, which is faster
DRAWN = 262_139  # numbers drawn at once: a prime, so that no row of a larger array meets the same ones in the same place


class Rounding:
    """Multiplies every number that passes by 1 + e, e uniform within ± the size of the precision's errors.

    A precision with `+winograd` is that of a library that may take Winograd's way to a convolution. `nearest`: no error
    is drawn where a low precision rounds in one known way. All right programs round alike there, and turn the same
    kinks over, which drawn errors may all miss."""

    def __init__(self, precision: str, seed: list[int], *, nearest: bool = False) -> None:
        precision, _, fast = precision.partition("+")
        if precision == "int8":
            raise Unsupported("int8 is another network; its price is its accuracy part.")
        if precision not in UNITS:
            raise unknown("precision with rounding errors", precision, UNITS)
        wide = SUMMED * UNITS["fp64" if precision == "fp64" else WIDE]
        self.size, self.wide = max(UNITS[precision], wide), wide
        self.dtype = np.float32 if UNITS[precision] >= COARSE else np.float64
        self._unit = UNITS[precision] if nearest and UNITS[precision] >= COARSE else None
        self._seed, self._between = seed, np.random.default_rng([*seed, 1])
        drawn = 2 * np.random.default_rng([*seed, 2]).random(DRAWN) - 1
        shortcut = max(self.size, WINOGRAD * wide) if fast else self.size
        sizes = (self.size, self.wide, shortcut)
        self._errors: Array
        self._errors, self._small, self._shortcut = (
            (1 + size * drawn).astype(self.dtype) for size in sizes
        )
        self.begin()

    def begin(self) -> None:
        """A new pass. It errs as the one before did: the same batch and nearly the same weights are rounded alike, so
        that over the steps of a training the errors add up and do not average out."""
        self._random = np.random.default_rng([*self._seed, 0])

    def __call__(self, values: Array) -> Array:
        return self._erring(values, self._errors)

    def kept(self, values: Array) -> Array:
        """Of what lives from step to step: weights and moving statistics."""
        return _rounded(values, self._small, self._between)

    def number(self, value: float) -> float:
        """One that a program computes for itself, alone and so without a sum, in the width of what is kept."""
        return value * (1 + self.wide / SUMMED * float(self._between.choice([-2.0, 2.0])))

    def _erring(self, values: Array, factors: Array) -> Array:
        return (
            _rounded(values, factors, self._random)
            if self._unit is None
            else _nearest(values, self._unit)
        )

    def _summed(self, values: Array, count: float) -> Array:
        """A weight's gradient, of so many summands: long chains of them err more than anything else does."""
        size = self.wide / SUMMED * math.sqrt(count / LANES)
        if size <= self.size:
            return values
        return _rounded(values, 1 + size / self.size * (self._errors - 1), self._random)

    def around(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """A layer's function with errors in its inputs, weights and output, and in all that goes back through it."""

        def rounded(layer: Any, weights: dict[str, Array], context: Any, *inputs: Array) -> Any:
            factors = self._shortcut if _slides_in_steps_of_one(layer) else self._errors

            def err(values: Array) -> Array:
                return self._erring(values, factors)

            given = {part: err(value) for part, value in weights.items()}
            output, back = compute(layer, given, context, *map(err, inputs))

            def rounded_back(gradient: Array) -> Any:
                of_inputs, of_weights = back(err(gradient))
                found = {
                    part: self._summed(err(s), gradient.size / len(s))
                    for part, s in of_weights.items()
                }
                return [err(s) for s in of_inputs], found

            return err(output), rounded_back

        return rounded


def _slides_in_steps_of_one(layer: Any) -> bool:
    """A convolution of windows that overlap, as Winograd needs them."""
    op = layer.op
    return op.name == "conv" and max(op.kernel) > 1 and max(*op.stride, *op.dilation) == 1


def _nearest(values: Array, unit: float) -> Array:
    """To so many digits, by Veltkamp's splitting of a float32."""
    if values is None or values.dtype.kind != "f":
        return values
    exact = values.astype(np.float32, copy=False)
    raised = exact * np.float32(1 + unit / UNITS["fp32"])
    return raised - (raised - exact)


def _rounded(values: Array, factors: Array, random: np.random.Generator) -> Array:
    """Times the drawn factors from a random one on, round and round: drawing each anew would take most of the time."""
    if values is None or values.dtype.kind != "f":  # no gradient, or tokens
        return values
    found = np.empty(values.shape, factors.dtype)
    flat, given = found.reshape(-1), values.reshape(-1)
    place, turn = 0, int(random.integers(len(factors)))
    while place < flat.size:
        part = factors[turn : turn + flat.size - place]
        np.multiply(given[place : place + part.size], part, out=flat[place : place + part.size])
        place, turn = place + part.size, 0
    return found
