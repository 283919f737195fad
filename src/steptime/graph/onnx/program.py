"""What programs that run the graph's own ONNX model share: weights and batch go in, and a step's end is its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.program import DeviceTimer
from steptime.graph.onnx import onnx_model
from steptime.graph.weights import check
from steptime.graph.work import Work


class OnnxProgram(ABC):
    """A reader compiles a model for the step's batch size, from weights that it folds and packs."""

    reader: ClassVar[str]
    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case, dtype: Any) -> None:
        self.graph, self.case, self.dtype = work.graph, case, np.dtype(dtype)
        self.input = self._cast(work.batch["input"])
        self.load(work.weights)

    @abstractmethod
    def _build(self) -> None:
        """Compiles for the weights, and makes the step's input ready."""

    @abstractmethod
    def _place(self) -> None:
        """Moves the step's input to where the steps find it."""

    @abstractmethod
    def _outputs(self, values: Any) -> Any:
        """Of a batch of any size."""

    def wait(self) -> None:  # noqa: B027  # there is never anything to wait for
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def feed(self, batch: dict[str, Any]) -> None:
        self.input = self._cast(batch["input"])
        self._place()

    def weights(self) -> dict[str, Any]:
        """At least fp32, as from every framework."""
        wide = np.promote_types(self.dtype, np.float32)
        return {name: array.astype(wide) for name, array in self._weights.items()}

    def load(self, weights: dict[str, Any]) -> None:
        check(weights, self.graph)
        self._weights = {name: np.array(array, dtype=self.dtype) for name, array in weights.items()}
        self._build()

    def predict(self, batch: dict[str, Any]) -> Any:
        output = self._outputs(self._cast(batch["input"]))
        return output.astype(np.promote_types(output.dtype, np.float32))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        raise Unsupported(f"{self.reader} has no gradients here: it infers from a finished graph.")

    def _model(self, batch_size: int) -> bytes:
        model = onnx_model(self.graph, self._weights, batch_size=batch_size, dtype=self.dtype.name)
        found: bytes = model.SerializeToString()
        return found

    def _cast(self, values: Any) -> Any:
        """A copy, so that nobody changes it from outside; tokens stay whole numbers."""
        return np.array(values, dtype=self.dtype if values.dtype.kind == "f" else np.int64)
