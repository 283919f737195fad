"""Rounding errors, drawn at random and put where a computer of lower precision makes them (METHOD.md, certificates)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.core.errors import Unsupported, unknown

Array = Any
UNITS = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-11, "bf16": 2.0**-8, "fp16": 2.0**-11, "fp8": 2.0**-4}
"""Unit roundoff: half the distance from 1 to the next number."""
SUMMED = 8.0  # a sum of n products in lanes and blocks of about 64 errs like products that each err by √64 roundoffs
WIDE = "fp32"  # lower precisions sum in it, and keep the weights that are trained in it


class Rounding:
    """Multiplies every number that passes by 1 + e, e uniform within ± the size of the precision's errors."""

    def __init__(self, precision: str, seed: list[int]) -> None:
        if precision == "int8":
            raise Unsupported("int8 is another network; its price is its accuracy part.")
        if precision not in UNITS:
            raise unknown("precision with rounding errors", precision, UNITS)
        wide = SUMMED * UNITS["fp64" if precision == "fp64" else WIDE]
        self.size, self.wide = max(UNITS[precision], wide), wide
        self._seed, self._between = seed, np.random.default_rng([*seed, 1])
        self.begin()

    def begin(self) -> None:
        """A new pass. It errs as the one before did: the same batch and nearly the same weights are rounded alike, so
        that over the steps of a training the errors add up and do not average out."""
        self._random = np.random.default_rng([*self._seed, 0])

    def __call__(self, values: Array) -> Array:
        return _rounded(values, self.size, self._random)

    def kept(self, values: Array) -> Array:
        """Of what lives from step to step: weights and moving statistics."""
        return _rounded(values, self.wide, self._between)

    def number(self, value: float) -> float:
        """One that a program computes for itself, alone and so without a sum, in the width of what is kept."""
        return value * (1 + self.wide / SUMMED * float(self._between.choice([-2.0, 2.0])))

    def around(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """A layer's function with errors in its inputs, weights and output, and in all that goes back through it."""

        def rounded(layer: Any, weights: dict[str, Array], walk: Any, *inputs: Array) -> Any:
            given = {part: self(value) for part, value in weights.items()}
            output, back = compute(layer, given, walk, *map(self, inputs))

            def rounded_back(slope: Array) -> Any:
                of_inputs, of_weights = back(self(slope))
                return [self(s) for s in of_inputs], {part: self(s) for part, s in of_weights.items()}

            return self(output), rounded_back

        return rounded


def _rounded(values: Array, size: float, random: np.random.Generator) -> Array:
    if values is None or values.dtype.kind != "f":  # no gradient, or tokens
        return values
    return values * (1 + size * (2 * random.random(values.shape) - 1))
