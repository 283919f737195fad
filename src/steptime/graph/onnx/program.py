"""The base of programs that run the graph as an ONNX model. A step is complete when it returns."""

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
    """A runtime compiles a model for the step's batch size; it folds and packs the weights."""

    runtime: ClassVar[str]
    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case, dtype: Any) -> None:
        self.graph = work.graph
        self.case = case
        self.dtype = np.dtype(dtype)
        self.input = self._cast(work.batch["input"])
        self.load(work.weights)

    @abstractmethod
    def _build(self) -> None:
        """Compiles for the weights, and prepares the step's input."""

    @abstractmethod
    def _place(self) -> None:
        """Moves the step's input to the memory from which the steps read it."""

    @abstractmethod
    def _outputs(self, values: Any) -> Any:
        """The outputs of a batch of any size."""

    # There is never anything to wait for, so this is no abstract method.
    def wait(self) -> None:  # noqa: B027
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def feed(self, batch: dict[str, Any]) -> None:
        self.input = self._cast(batch["input"])
        self._place()

    def to_array(self, result: Any) -> Any:
        return np.array(result)

    def weights(self) -> dict[str, Any]:
        """At least fp32, as every framework returns them."""
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
        raise Unsupported(f"{self.runtime} has no gradients here: it infers from a finished graph.")

    def _model(self, batch_size: int) -> bytes:
        model = onnx_model(self.graph, self._weights, batch_size=batch_size, dtype=self.dtype.name)
        content: bytes = model.SerializeToString()
        return content

    def _cast(self, values: Any) -> Any:
        """A copy, so that the caller cannot change it; tokens stay whole numbers."""
        dtype = self.dtype if values.dtype.kind == "f" else np.int64
        return np.array(values, dtype=dtype)
