"""Optimisers: the formulas of `graph.optimizer`, line by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from steptime.frameworks.numpy.context import Array
from steptime.graph import Optimizer

State = dict[str, Array]  # of one block
RoundNumber = Callable[[float], float]  # how a number of the rule is stored
# Numbers of a weight that are updated at once: all that belongs to them stays in the cache.
BLOCK = 1 << 15


def _sgd(rule: Optimizer, state: State, gradient: Array, corrections: list[float]) -> Array:
    return gradient


def _momentum(rule: Optimizer, state: State, gradient: Array, corrections: list[float]) -> Array:
    state["v"] = rule.momentum * state.get("v", 0.0) + gradient
    return state["v"]


def _adam(rule: Optimizer, state: State, gradient: Array, corrections: list[float]) -> Array:
    first, second = rule.betas
    state["m"] = first * state.get("m", 0.0) + (1 - first) * gradient
    state["s"] = second * state.get("s", 0.0) + (1 - second) * gradient**2
    root = np.sqrt(state["s"] / corrections[1])
    return state["m"] / corrections[0] / (root + rule.epsilon)


RULES: dict[str, Callable[[Optimizer, State, Array, list[float]], Array]] = {
    "sgd": _sgd,
    "momentum": _momentum,
    "adam": _adam,
}


class Stepper:
    """Holds the state of the rule between steps. Updates weights in place."""

    def __init__(self, rule: Optimizer, round_number: RoundNumber = float) -> None:
        self.rule = rule
        self.round_number = round_number
        self.time = 0
        self.states: dict[tuple[str, int], State] = {}

    def update(self, weights: dict[str, Array], gradients: dict[str, Array]) -> None:
        self.time += 1
        # Adam's bias corrections, 1 − βᵗ. The powers are near 1, so their rounding errors are
        # large relative to the difference.
        corrections = [1 - self.round_number(beta**self.time) for beta in self.rule.betas]
        for name, gradient in gradients.items():
            weight = weights[name].reshape(-1)
            flat_gradient = gradient.reshape(-1)
            for start in range(0, weight.size, BLOCK):
                block = slice(start, start + BLOCK)
                state = self.states.setdefault((name, start), {})
                weight[block] = self._updated_block(
                    weight[block], flat_gradient[block], state, corrections
                )

    def _updated_block(
        self, weight: Array, gradient: Array, state: State, corrections: list[float]
    ) -> Array:
        rule = self.rule
        if rule.weight_decay and rule.decoupled:
            weight = weight - rule.rate * rule.weight_decay * weight
        elif rule.weight_decay:
            gradient = gradient + rule.weight_decay * weight
        direction = RULES[rule.algorithm](rule, state, gradient, corrections)
        return weight - rule.rate * direction
