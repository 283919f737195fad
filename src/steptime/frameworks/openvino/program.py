"""One case in OpenVINO: a model compiled for the batch's size. It is done when the step returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino import Tensor

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.program import DeviceTimer
from steptime.frameworks.openvino import settings
from steptime.graph import Work
from steptime.graph.onnx_model import onnx_model
from steptime.graph.weights import check


class OpenvinoProgram:
    """Steps: in data mode `device` the input lies in the request's own tensor and the output is a view of it; in `host`
    each step takes a NumPy array and gives one. Lower precisions are the kernels' alone: fp32 goes in and out."""

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        self.graph, self.case = work.graph, case
        self.input = _placed(work.batch["input"])
        self.load(work.weights)
        self.step = self._preset if case.data == "device" else self._fetched

    def wait(self) -> None:
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def facts(self) -> dict[str, Any]:
        ran = settings.executed(self._model(len(self.input)), self.case, self.input)
        return {**settings.facts(self.compiled), "kernels": ran}

    def weights(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self._weights.items()}

    def load(self, weights: dict[str, Any]) -> None:
        """Compiles anew, because a compiled model has its weights folded and packed."""
        check(weights, self.graph)
        self._weights = {name: np.array(array, dtype=np.float32) for name, array in weights.items()}
        self.compiled = settings.compiled(self._model(len(self.input)), self.case)
        self.request = self.compiled.create_infer_request()
        self.request.set_input_tensor(Tensor(self.input))  # a copy

    def predict(self, batch: dict[str, Any]) -> Any:
        values = _placed(batch["input"])
        compiled = self.compiled
        if len(values) != len(self.input):
            compiled = settings.compiled(self._model(len(values)), self.case)
        return compiled.create_infer_request().infer({0: values})[0]

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        raise Unsupported("OpenVINO has no gradients: it infers from a finished graph.")

    def _model(self, batch_size: int) -> bytes:
        found: bytes = onnx_model(self.graph, self._weights, batch_size=batch_size).SerializeToString()
        return found

    def _preset(self) -> Any:
        return self.request.infer(share_outputs=True)[0]

    def _fetched(self) -> Any:
        return self.request.infer({0: self.input})[0]


def _placed(values: Any) -> Any:
    """A copy, so that nobody changes it from outside; tokens stay whole numbers."""
    return np.array(values, dtype=np.float32 if values.dtype.kind == "f" else np.int64)
