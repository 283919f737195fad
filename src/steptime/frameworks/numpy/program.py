"""One case in NumPy. A step is complete when it returns, so there is nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.core.program import DeviceTimer
from steptime.frameworks.numpy.context import Array, LoweringContext
from steptime.frameworks.numpy.optimizer import Stepper
from steptime.frameworks.numpy.passes import backward, forward, loss
from steptime.frameworks.numpy.rounding import Rounding
from steptime.graph import Work
from steptime.graph.weights import check

# Separates dropout's random stream from those of the weights and the batch.
DROPOUT_STREAM = 0x64_726F_70


class NumpyProgram:
    """Implements `core.program.Program`."""

    timer: DeviceTimer | None = None

    def __init__(
        self, work: Work, *, phase: str, seed: int, rounding: Rounding | None = None
    ) -> None:
        self._rounding = rounding  # None: exact
        self._dtype = rounding.dtype if rounding else np.float64
        self.graph = work.graph
        self.batch = self._cast(work.batch)
        self.load(work.weights)
        self._stepper = Stepper(work.optimizer, rounding.round_number if rounding else float)
        self._rng = np.random.default_rng([seed, DROPOUT_STREAM])
        steps: dict[str, Callable[[], Array]] = {
            "training": self._train,
            "inference": self._infer,
            "forward": self._forward,
        }
        # An attribute and no method, so that a step costs no further call.
        self.step: Callable[[], Any] = steps[phase]

    def wait(self) -> None:
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def facts(self) -> dict[str, Any]:
        return {"dtype": np.dtype(self._dtype).name}

    def feed(self, batch: dict[str, Any]) -> None:
        self.batch = self._cast(batch)

    def kernels(self) -> dict[str, int]:
        return {}

    def to_array(self, result: Any) -> Array:
        return np.array(result)

    def weights(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self._weights.items()}

    def load(self, weights: dict[str, Any]) -> None:
        check(weights, self.graph)
        self._weights = {
            name: np.array(array, dtype=self._dtype) for name, array in weights.items()
        }

    def predict(self, batch: dict[str, Any]) -> Array:
        return self._predict(self._cast(batch)["input"])

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Array]]:
        context = LoweringContext(training=True, rounding=self._rounding)
        return self._gradients(self._cast(batch), context)

    def _predict(self, x: Array) -> Array:
        context = LoweringContext(training=False, rounding=self._rounding)
        output, _ = forward(self.graph, self._weights, x, context)
        return output

    def _infer(self) -> Array:
        return self._predict(self.batch["input"])

    def _forward(self) -> float:
        context = self._training_context()
        output, _ = forward(self.graph, self._weights, self.batch["input"], context)
        self._weights.update(context.statistics)
        value, _ = loss(output, self.batch["target"])
        return value

    def _train(self) -> float:
        context = self._training_context()
        value, gradients = self._gradients(self.batch, context)
        self._weights.update(context.statistics)
        self._stepper.update(self._weights, gradients)
        if self._rounding is not None:
            for name, array in self._weights.items():
                self._weights[name] = self._rounding.round_state(array)
        return value

    def _training_context(self) -> LoweringContext:
        return LoweringContext(training=True, rng=self._rng, rounding=self._rounding)

    def _gradients(
        self, batch: dict[str, Any], context: LoweringContext
    ) -> tuple[float, dict[str, Array]]:
        output, backwards = forward(self.graph, self._weights, batch["input"], context)
        value, gradient = loss(output, batch["target"])
        return value, backward(self.graph, backwards, gradient)

    def _cast(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Floats to the dtype of the program; tokens and targets stay whole numbers."""
        arrays = {}
        for name, array in batch.items():
            is_float = array.dtype.kind == "f"
            arrays[name] = array.astype(self._dtype) if is_float else np.asarray(array)
        return arrays
