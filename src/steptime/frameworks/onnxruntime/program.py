"""One case in ONNX Runtime: a session for the step's batch size. A step is done when it returns."""

from __future__ import annotations

from typing import Any

from onnxruntime import OrtValue

from steptime.core.case import Case
from steptime.core.inspection import StepProfile
from steptime.frameworks.onnxruntime import settings
from steptime.frameworks.onnxruntime.kernels import kernels_of
from steptime.frameworks.onnxruntime.profiler import profile_steps
from steptime.graph import Work
from steptime.graph.onnx.program import OnnxProgram


class OnnxruntimeProgram(OnnxProgram):
    """In data mode `device`, input and output are bound to memory on the device once. In `host`,
    each step takes a NumPy array and returns one."""

    runtime = "ONNX Runtime"

    def __init__(self, work: Work, case: Case) -> None:
        super().__init__(work, case, settings.DTYPES[case.precision])
        # Chosen once, so that no step has to look at the case.
        self.step = self._run_bound if case.data == "device" else self._run_from_host

    def facts(self) -> dict[str, Any]:
        return settings.facts(self.case, self.session)

    def to_array(self, result: Any) -> Any:
        """A bound output is a value of the runtime; from the host it is an array."""
        values = result.numpy() if isinstance(result, OrtValue) else result
        return super().to_array(values)

    def kernels(self) -> dict[str, int]:
        return kernels_of(self._model(len(self.input)), self.case, self._feeds(self.input))

    def profile(self, steps: int) -> StepProfile:
        return profile_steps(
            self._model(len(self.input)), self.case, self._feeds(self.input), steps
        )

    def _build(self) -> None:
        self.session = self._open_session(len(self.input))
        device = settings.device(self.case)
        shape = [len(self.input), *self.graph[self.graph.output].shape]
        self.resident = OrtValue.ortvalue_from_numpy(self.input.copy(), *device)
        self.output = OrtValue.ortvalue_from_shape_and_type(shape, self.dtype, *device)
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input(self.graph.input.name, self.resident)
        self.binding.bind_ortvalue_output(self.graph.output, self.output)

    def _place(self) -> None:
        self.resident.update_inplace(self.input)

    def _outputs(self, values: Any) -> Any:
        session = self.session
        # A session is compiled for one batch size.
        if len(values) != len(self.input):
            session = self._open_session(len(values))
        return session.run(None, self._feeds(values))[0]

    def _open_session(self, batch_size: int) -> Any:
        options = settings.session_options(self.case)
        return settings.open_session(self._model(batch_size), self.case, options)

    def _feeds(self, values: Any) -> dict[str, Any]:
        return {self.graph.input.name: values}

    def _run_bound(self) -> Any:
        self.session.run_with_iobinding(self.binding)
        return self.output

    def _run_from_host(self) -> Any:
        return self.session.run(None, {self.graph.input.name: self.input})[0]
