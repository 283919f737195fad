"""How weights move, exactly. g is the gradient of the mean loss over the batch, w a trainable weight."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Optimizer:
    """sgd:       w ← w − rate · g
    momentum:  v ← momentum · v + g (v starts as g);  w ← w − rate · v
    adam:      m ← β₁ m + (1 − β₁) g;  s ← β₂ s + (1 − β₂) g²;
               w ← w − rate · (m / (1 − β₁ᵗ)) / (√(s / (1 − β₂ᵗ)) + epsilon),  t counts from 1
    """

    kind: str
    rate: float
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8


def sgd(rate: float = 0.01) -> Optimizer:
    return Optimizer("sgd", rate)


def momentum(rate: float = 0.01, momentum: float = 0.9) -> Optimizer:
    return Optimizer("momentum", rate, momentum)


def adam(rate: float = 1e-3, epsilon: float = 1e-8) -> Optimizer:
    return Optimizer("adam", rate, epsilon=epsilon)


BY_NAME = {"sgd": sgd, "momentum": momentum, "adam": adam}
