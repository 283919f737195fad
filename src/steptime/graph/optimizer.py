"""Optimisers, exactly. g is the gradient of the mean loss over the batch, w a trainable weight."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Optimizer:
    """sgd:       w ← w − rate · g
    momentum:  v ← momentum · v + g (v starts as g);  w ← w − rate · v
    adam:      m ← β₁ m + (1 − β₁) g;  s ← β₂ s + (1 − β₂) g²;
               w ← w − rate · (m / (1 − β₁ᵗ)) / (√(s / (1 − β₂ᵗ)) + epsilon),  t counts from 1

    Weight decay d pulls every trainable weight towards 0. Coupled (L2 regularisation):
    g ← g + d · w before all of the above. Decoupled (AdamW): w ← w − rate · d · w before the
    update, which then uses the g of the loss alone."""

    algorithm: str
    rate: float
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False


def sgd(rate: float = 0.01) -> Optimizer:
    return Optimizer("sgd", rate)


def momentum(rate: float = 0.01, momentum: float = 0.9, *, weight_decay: float = 0.0) -> Optimizer:
    return Optimizer("momentum", rate, momentum, weight_decay=weight_decay)


def adam(
    rate: float = 1e-3, epsilon: float = 1e-8, *, betas: tuple[float, float] = (0.9, 0.999)
) -> Optimizer:
    return Optimizer("adam", rate, betas=betas, epsilon=epsilon)


def adamw(
    rate: float = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999), weight_decay: float = 0.01
) -> Optimizer:
    return Optimizer("adam", rate, betas=betas, weight_decay=weight_decay, decoupled=True)


BY_NAME = {"sgd": sgd, "momentum": momentum, "adam": adam, "adamw": adamw}
