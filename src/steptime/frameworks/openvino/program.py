"""One case in OpenVINO: a model compiled for the batch's size. It is done when the step returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino import Tensor

from steptime.core.case import Case
from steptime.core.inspection import StepProfile
from steptime.frameworks.openvino import settings
from steptime.frameworks.openvino.profiler import watch
from steptime.graph import Work
from steptime.graph.onnx.program import OnnxProgram


class OpenvinoProgram(OnnxProgram):
    """Steps: in data mode `device` the input lies in the request's own tensor and the output is a view of it; in `host`
    each step takes a NumPy array and gives one. Lower precisions are the kernels' alone: fp32 goes in and out."""

    runtime = "OpenVINO"

    def __init__(self, work: Work, case: Case) -> None:
        super().__init__(work, case, np.float32)
        self.step = self._preset if case.data == "device" else self._fetched

    def facts(self) -> dict[str, Any]:
        return settings.facts(self.compiled)

    def kernels(self) -> dict[str, int]:
        return settings.kernels(self.compiled)

    def profile(self, steps: int) -> StepProfile:
        counting = settings.compiled(self._model(len(self.input)), self.case, PERF_COUNT=True)
        return watch(counting, self.input, steps)

    def _build(self) -> None:
        self.compiled = settings.compiled(self._model(len(self.input)), self.case)
        self.request = self.compiled.create_infer_request()
        self._place()

    def _place(self) -> None:
        self.request.set_input_tensor(Tensor(self.input))  # a copy

    def _outputs(self, values: Any) -> Any:
        compiled = self.compiled
        if len(values) != len(self.input):
            compiled = settings.compiled(self._model(len(values)), self.case)
        return compiled.create_infer_request().infer({0: values})[0]

    def _preset(self) -> Any:
        return self.request.infer(share_outputs=True)[0]

    def _fetched(self) -> Any:
        return self.request.infer({0: self.input})[0]
