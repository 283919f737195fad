"""One case in NumPy: done when the step returns, so there is nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.frameworks.numpy.context import Array, LoweringContext
from steptime.frameworks.numpy.optimizer import Stepper
from steptime.frameworks.numpy.reference import backward, forward, loss
from steptime.frameworks.numpy.rounding import Rounding
from steptime.graph import Work
from steptime.graph.weights import check


class NumpyProgram:
    timer = None

    def __init__(
        self, work: Work, *, phase: str, seed: int, rounding: Rounding | None = None
    ) -> None:
        self._rounding = rounding  # None: exact
        self._dtype = rounding.dtype if rounding else np.float64
        self.graph, self.batch = work.graph, self._floats(work.batch)
        self.load(work.weights)
        self._stepper = Stepper(work.optimizer, rounding.number if rounding else float)
        self._random = np.random.default_rng(
            [seed, 0x64_726F_70]
        )  # apart from the weights' and the batch's streams
        steps: dict[str, Callable[[], Array]] = {
            "training": self._train,
            "inference": lambda: self._predict(self.batch["input"]),
            "forward": self._forward,
        }
        self.step = steps[phase]

    def wait(self) -> None:
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def facts(self) -> dict[str, Any]:
        return {"dtype": np.dtype(self._dtype).name}

    def feed(self, batch: dict[str, Any]) -> None:
        self.batch = self._floats(batch)

    def kernels(self) -> dict[str, int]:
        return {}

    def weights(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self._weights.items()}

    def load(self, weights: dict[str, Any]) -> None:
        check(weights, self.graph)
        self._weights = {
            name: np.array(array, dtype=self._dtype) for name, array in weights.items()
        }

    def predict(self, batch: dict[str, Any]) -> Array:
        return self._predict(self._floats(batch)["input"])

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Array]]:
        return self._gradients(
            self._floats(batch), LoweringContext(training=True, rounding=self._rounding)
        )

    def _predict(self, x: Array) -> Array:
        return forward(
            self.graph, self._weights, x, LoweringContext(training=False, rounding=self._rounding)
        )[0]

    def _forward(self) -> float:
        context = LoweringContext(training=True, random=self._random, rounding=self._rounding)
        output, _ = forward(self.graph, self._weights, self.batch["input"], context)
        self._weights.update(context.statistics)
        return loss(output, self.batch["target"])[0]

    def _train(self) -> float:
        context = LoweringContext(training=True, random=self._random, rounding=self._rounding)
        value, gradients = self._gradients(self.batch, context)
        self._weights.update(context.statistics)
        self._stepper.update(self._weights, gradients)
        if self._rounding is not None:
            self._weights = {
                name: self._rounding.kept(array) for name, array in self._weights.items()
            }
        return value

    def _gradients(
        self, batch: dict[str, Any], context: LoweringContext
    ) -> tuple[float, dict[str, Array]]:
        output, backs = forward(self.graph, self._weights, batch["input"], context)
        value, gradient = loss(output, batch["target"])
        return value, backward(self.graph, backs, gradient)

    def _floats(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Tokens and targets stay whole numbers."""
        return {
            name: a.astype(self._dtype) if a.dtype.kind == "f" else np.asarray(a)
            for name, a in batch.items()
        }
