"""How well a network's outputs predict the targets, counted batch by batch, with an interval."""

from __future__ import annotations

from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.engine.task_metric import student_95, wilson


class Score:
    """Of outputs (batch, …, classes) and targets (batch, …).

    Samples count as independent, positions within a sample do not."""

    def __init__(self) -> None:
        self.correct = 0
        self.count = 0
        self._losses: list[NDArray[Any]] = []

    def add(self, outputs: Any, targets: NDArray[Any]) -> None:
        logits = np.asarray(outputs, np.float32)
        # Subtracting the largest logit keeps the exponentials finite.
        top = logits.max(axis=-1, keepdims=True)
        total = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
        chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        losses = total - chosen
        self._losses.append(losses.reshape(len(losses), -1).mean(axis=1))
        self.correct += int((logits.argmax(axis=-1) == targets).sum())
        self.count += targets.size

    @property
    def losses(self) -> NDArray[Any]:
        return np.concatenate(self._losses).astype(np.float64)

    def to_dict(self, metric: str) -> dict[str, Any]:
        value, (low, high) = self._perplexity() if metric == "perplexity" else self._accuracy()
        return {
            "metric": metric,
            "value": value,
            "low": low,
            "high": high,
            "loss": float(self.losses.mean()),
            "samples": len(self.losses),
            "predictions": self.count,
            "correct": self.correct,
        }

    def _accuracy(self) -> tuple[float, tuple[float, float]]:
        return self.correct / self.count, wilson(self.correct, self.count)

    def _perplexity(self) -> tuple[float, tuple[float, float]]:
        losses = self.losses
        mean = losses.mean()
        count = len(losses)
        error = inf
        if count > 1:
            error = student_95(count - 1) * losses.std(ddof=1) / sqrt(count)
        return exp(mean), (exp(mean - error), exp(mean + error))
