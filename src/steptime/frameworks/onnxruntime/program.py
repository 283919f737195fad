"""One case in ONNX Runtime: a session for the batch's size. It is done when the step returns."""

from __future__ import annotations

from typing import Any

from onnxruntime import OrtValue

from steptime.core.case import Case
from steptime.core.inspection import StepProfile
from steptime.frameworks.onnxruntime import kernels, profiler, settings
from steptime.graph import Work
from steptime.graph.onnx.program import OnnxProgram


class OnnxruntimeProgram(OnnxProgram):
    """Steps: in data mode `device` input and output are bound to memory on the device once; in `host` each step takes a
    NumPy array and gives one."""

    runtime = "ONNX Runtime"

    def __init__(self, work: Work, case: Case) -> None:
        super().__init__(work, case, settings.DTYPES[case.precision])
        self.step = self._bound if case.data == "device" else self._fetched

    def facts(self) -> dict[str, Any]:
        return settings.facts(self.case, self.session)

    def kernels(self) -> dict[str, int]:
        return kernels.executed(
            self._model(len(self.input)), self.case, {self.graph.input.name: self.input}
        )

    def profile(self, steps: int) -> StepProfile:
        feed = {self.graph.input.name: self.input}
        return profiler.watch(self._model(len(self.input)), self.case, feed, steps)

    def _build(self) -> None:
        self.session = self._session(len(self.input))
        place = settings.place(self.case)
        shape = [len(self.input), *self.graph[self.graph.output].shape]
        self.resident = OrtValue.ortvalue_from_numpy(self.input.copy(), *place)
        self.output = OrtValue.ortvalue_from_shape_and_type(shape, self.dtype, *place)
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input(self.graph.input.name, self.resident)
        self.binding.bind_ortvalue_output(self.graph.output, self.output)

    def _place(self) -> None:
        self.resident.update_inplace(self.input)

    def _outputs(self, values: Any) -> Any:
        session = self.session if len(values) == len(self.input) else self._session(len(values))
        return session.run(None, {self.graph.input.name: values})[0]

    def _session(self, batch_size: int) -> Any:
        return settings.session(self._model(batch_size), self.case, settings.options(self.case))

    def _bound(self) -> Any:
        self.session.run_with_iobinding(self.binding)
        return self.output

    def _fetched(self) -> Any:
        return self.session.run(None, {self.graph.input.name: self.input})[0]
