"""How weights move: the formulas of `graph.optimizer`, line by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.walk import Array
from steptime.graph import Optimizer

State = dict[str, Array]  # of one weight


def _sgd(rule: Optimizer, state: State, slope: Array, time: int) -> Array:
    return slope


def _momentum(rule: Optimizer, state: State, slope: Array, time: int) -> Array:
    state["v"] = rule.momentum * state.get("v", 0.0) + slope
    return state["v"]


def _adam(rule: Optimizer, state: State, slope: Array, time: int) -> Array:
    first, second = rule.betas
    state["m"] = first * state.get("m", 0.0) + (1 - first) * slope
    state["s"] = second * state.get("s", 0.0) + (1 - second) * slope**2
    return state["m"] / (1 - first**time) / (np.sqrt(state["s"] / (1 - second**time)) + rule.epsilon)


RULES: dict[str, Callable[[Optimizer, State, Array, int], Array]] = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adam": _adam,
}


class Stepper:
    """Keeps what the rule remembers between steps."""

    def __init__(self, rule: Optimizer) -> None:
        self.rule, self.time = rule, 0
        self.states: dict[str, State] = {}

    def update(self, weights: dict[str, Array], slopes: dict[str, Array]) -> None:
        self.time += 1
        for name, slope in slopes.items():
            state = self.states.setdefault(name, {})
            weights[name] = weights[name] - self.rule.rate * RULES[self.rule.kind](self.rule, state, slope, self.time)
