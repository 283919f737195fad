"""How weights move: the formulas of `graph.optimizer`, line by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.walk import Array
from steptime.graph import Optimizer

State = dict[str, Array]  # of one weight
Rounded = Callable[[float], float]  # what a number of the rule becomes where it is stored


def _sgd(rule: Optimizer, state: State, slope: Array, time: int, rounded: Rounded) -> Array:
    return slope


def _momentum(rule: Optimizer, state: State, slope: Array, time: int, rounded: Rounded) -> Array:
    state["v"] = rule.momentum * state.get("v", 0.0) + slope
    return state["v"]


def _adam(rule: Optimizer, state: State, slope: Array, time: int, rounded: Rounded) -> Array:
    first, second = rule.betas
    state["m"] = first * state.get("m", 0.0) + (1 - first) * slope
    state["s"] = second * state.get("s", 0.0) + (1 - second) * slope**2
    # The powers are near 1, so that their own rounding grows where 1 less them is left.
    early, spread = 1 - rounded(first**time), 1 - rounded(second**time)
    return state["m"] / early / (np.sqrt(state["s"] / spread) + rule.epsilon)


RULES: dict[str, Callable[[Optimizer, State, Array, int, Rounded], Array]] = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adam": _adam,
}


class Stepper:
    """Keeps what the rule remembers between steps."""

    def __init__(self, rule: Optimizer, rounded: Rounded = float) -> None:
        self.rule, self.rounded, self.time = rule, rounded, 0
        self.states: dict[str, State] = {}

    def update(self, weights: dict[str, Array], slopes: dict[str, Array]) -> None:
        self.time += 1
        for name, slope in slopes.items():
            weights[name] = self._moved(weights[name], slope, self.states.setdefault(name, {}))

    def _moved(self, weight: Array, slope: Array, state: State) -> Array:
        rule = self.rule
        if rule.decoupled:
            weight = weight - rule.rate * rule.weight_decay * weight
        else:
            slope = slope + rule.weight_decay * weight
        return weight - rule.rate * RULES[rule.kind](rule, state, slope, self.time, self.rounded)
