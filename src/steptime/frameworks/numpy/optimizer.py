"""How weights move: the formulas of `graph.optimizer`, line by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.context import Array
from steptime.graph import Optimizer

State = dict[str, Array]  # of one block
Rounded = Callable[[float], float]  # what a number of the rule becomes where it is stored
BLOCK = (
    1 << 15
)  # numbers of a weight that are moved at once: all that belongs to them stays in the cache


def _sgd(rule: Optimizer, state: State, gradient: Array, left: list[float]) -> Array:
    return gradient


def _momentum(rule: Optimizer, state: State, gradient: Array, left: list[float]) -> Array:
    state["v"] = rule.momentum * state.get("v", 0.0) + gradient
    return state["v"]


def _adam(rule: Optimizer, state: State, gradient: Array, left: list[float]) -> Array:
    first, second = rule.betas
    state["m"] = first * state.get("m", 0.0) + (1 - first) * gradient
    state["s"] = second * state.get("s", 0.0) + (1 - second) * gradient**2
    return state["m"] / left[0] / (np.sqrt(state["s"] / left[1]) + rule.epsilon)


RULES: dict[str, Callable[[Optimizer, State, Array, list[float]], Array]] = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adam": _adam,
}


class Stepper:
    """Keeps what the rule remembers between steps. Moves weights in place."""

    def __init__(self, rule: Optimizer, rounded: Rounded = float) -> None:
        self.rule, self.rounded, self.time = rule, rounded, 0
        self.states: dict[tuple[str, int], State] = {}

    def update(self, weights: dict[str, Array], gradients: dict[str, Array]) -> None:
        self.time += 1
        # 1 less the powers, for Adam: they are near 1, so that their own rounding grows in what is left.
        left = [1 - self.rounded(beta**self.time) for beta in self.rule.betas]
        for name, gradient in gradients.items():
            weight, flat = weights[name].reshape(-1), gradient.reshape(-1)
            for start in range(0, weight.size, BLOCK):
                block, state = (
                    slice(start, start + BLOCK),
                    self.states.setdefault((name, start), {}),
                )
                weight[block] = self._moved(weight[block], flat[block], state, left)

    def _moved(self, weight: Array, gradient: Array, state: State, left: list[float]) -> Array:
        rule = self.rule
        if rule.weight_decay and rule.decoupled:
            weight = weight - rule.rate * rule.weight_decay * weight
        elif rule.weight_decay:
            gradient = gradient + rule.weight_decay * weight
        return weight - rule.rate * RULES[rule.algorithm](rule, state, gradient, left)
