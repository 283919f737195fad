"""One case in ONNX Runtime: a session for the batch's size. It is done when the step returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnxruntime import OrtValue

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.program import DeviceTimer
from steptime.frameworks.onnxruntime import kernels, settings
from steptime.graph import Work
from steptime.graph.onnx_model import onnx_model
from steptime.graph.weights import check


class OnnxruntimeProgram:
    """Steps: in data mode `device` input and output are bound to memory on the device once; in `host` each step takes a
    NumPy array and gives one."""

    timer: DeviceTimer | None = None

    def __init__(self, work: Work, case: Case) -> None:
        self.graph, self.case = work.graph, case
        self.dtype = np.dtype(settings.DTYPES[case.precision])
        self.input = self._cast(work.batch["input"])
        self.load(work.weights)
        self.step = self._bound if case.data == "device" else self._fetched

    def wait(self) -> None:
        pass

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def facts(self) -> dict[str, Any]:
        ran = kernels.executed(self._model(len(self.input)), self.case, {self.graph.input.name: self.input})
        return {**settings.facts(self.case, self.session), "kernels": ran}

    def weights(self) -> dict[str, Any]:
        """At least fp32, as from every framework."""
        wide = np.promote_types(self.dtype, np.float32)
        return {name: array.astype(wide) for name, array in self._weights.items()}

    def load(self, weights: dict[str, Any]) -> None:
        """A new session, because a running one has its weights folded and packed."""
        check(weights, self.graph)
        self._weights = {name: np.array(array, dtype=self.dtype) for name, array in weights.items()}
        self.session = self._session(len(self.input))
        self._bind()

    def predict(self, batch: dict[str, Any]) -> Any:
        values = self._cast(batch["input"])
        session = self.session if len(values) == len(self.input) else self._session(len(values))
        output = session.run(None, {self.graph.input.name: values})[0]
        return output.astype(np.promote_types(output.dtype, np.float32))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        raise Unsupported("ONNX Runtime has no gradients here: it infers from a finished graph.")

    def _model(self, batch_size: int) -> bytes:
        model = onnx_model(self.graph, self._weights, batch_size=batch_size, dtype=self.dtype.name)
        found: bytes = model.SerializeToString()
        return found

    def _session(self, batch_size: int) -> Any:
        return settings.session(self._model(batch_size), self.case, settings.options(self.case))

    def _bind(self) -> None:
        place = settings.place(self.case)
        shape = [len(self.input), *self.graph[self.graph.output].shape]
        self.resident = OrtValue.ortvalue_from_numpy(self.input.copy(), *place)
        self.output = OrtValue.ortvalue_from_shape_and_type(shape, self.dtype, *place)
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input(self.graph.input.name, self.resident)
        self.binding.bind_ortvalue_output(self.graph.output, self.output)

    def _bound(self) -> Any:
        self.session.run_with_iobinding(self.binding)
        return self.output

    def _fetched(self) -> Any:
        return self.session.run(None, {self.graph.input.name: self.input})[0]

    def _cast(self, values: Any) -> Any:
        """A copy, so that nobody changes it from outside; tokens stay whole numbers."""
        return np.array(values, dtype=self.dtype if values.dtype.kind == "f" else np.int64)
