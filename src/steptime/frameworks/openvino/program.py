"""One case in OpenVINO: a model compiled for the step's batch size. A step is done when it
returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino import Tensor

from steptime.core.case import Case
from steptime.core.inspection import StepProfile
from steptime.frameworks.openvino import settings
from steptime.frameworks.openvino.kernels import kernels_of
from steptime.frameworks.openvino.profiler import profile_steps
from steptime.graph import Work
from steptime.graph.onnx.program import OnnxProgram


class OpenvinoProgram(OnnxProgram):
    """In data mode `device`, the input is in the tensor of the request, and the output is a view of
    its output tensor. In `host`, each step takes a NumPy array and returns one.

    Only the kernels compute in a lower precision: inputs and outputs are fp32."""

    runtime = "OpenVINO"

    def __init__(self, work: Work, case: Case) -> None:
        super().__init__(work, case, np.float32)
        # Chosen once, so that no step has to look at the case.
        self.step = self._run_resident if case.data == "device" else self._run_from_host

    def facts(self) -> dict[str, Any]:
        return settings.facts(self.compiled)

    def kernels(self) -> dict[str, int]:
        return kernels_of(self.compiled)

    def profile(self, steps: int) -> StepProfile:
        model = self._model(len(self.input))
        counting = settings.compile_model(model, self.case, count_time=True)
        return profile_steps(counting, self.input, steps)

    def _build(self) -> None:
        self.compiled = settings.compile_model(self._model(len(self.input)), self.case)
        self.request = self.compiled.create_infer_request()
        self._place()

    def _place(self) -> None:
        # `Tensor` copies the array.
        self.request.set_input_tensor(Tensor(self.input))

    def _outputs(self, values: Any) -> Any:
        compiled = self.compiled
        # A model is compiled for one batch size.
        if len(values) != len(self.input):
            compiled = settings.compile_model(self._model(len(values)), self.case)
        return compiled.create_infer_request().infer({0: values})[0]

    def _run_resident(self) -> Any:
        return self.request.infer(share_outputs=True)[0]

    def _run_from_host(self) -> Any:
        return self.request.infer({0: self.input})[0]
