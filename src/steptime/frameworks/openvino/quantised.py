"""int8 in OpenVINO: the ONNX model of the graph, quantised by NNCF.

Calibration batches show the ranges of values."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openvino

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.openvino.program import OpenvinoProgram
from steptime.graph import Work
from steptime.graph.batches import compute_in_batches
from steptime.graph.quantisation import not_quantisable, reduced_range

SCHEME = (
    "NNCF post-training with bias correction, symmetric weights per channel, "
    "activations per tensor, ranges by minimum and maximum"
)
OTHER_FRAMEWORKS = ("torch", "tensorflow", "jax")


class QuantisedProgram(OpenvinoProgram):
    """Quantised once, for the step's batch size. Predictions of other sizes use the same model."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "NNCF"):
            raise Unsupported(reason)
        self.calibration = [batch["input"] for batch in work.calibration]
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        facts["quantisation"] = SCHEME
        facts["reduced_range"] = reduced_range()
        facts["calibration_samples"] = sum(map(len, self.calibration))
        facts["preparation_seconds"] = self.preparation_seconds
        facts["quantised_nodes"] = self.quantised_nodes
        return facts

    def _model(self, batch_size: int) -> Any:
        begin = time.perf_counter()
        model = quantise(super()._model(batch_size), self.calibration)
        self.preparation_seconds = time.perf_counter() - begin
        types = [node.get_type_name() for node in model.get_ops()]
        self.quantised_nodes = types.count("FakeQuantize")
        return model

    def _outputs(self, values: Any) -> Any:
        return compute_in_batches(super()._outputs, values, len(self.input))


def quantise(model: bytes, calibration: list[Any]) -> Any:
    with _hide_other_frameworks():
        import nncf

        nncf.set_log_level(logging.ERROR)
        # NNCF's default is the mean of the batches' maxima, which cuts off the larger values.
        ranges = nncf.quantization.range_estimator.RangeEstimatorParametersSet.MINMAX
        fix = nncf.OverflowFix.ENABLE if reduced_range() else nncf.OverflowFix.DISABLE
        parameters = nncf.AdvancedQuantizationParameters(
            overflow_fix=fix, activations_range_estimator_params=ranges
        )
        return nncf.quantize(
            openvino.Core().read_model(model),
            nncf.Dataset(calibration),
            target_device=nncf.TargetDevice.CPU,
            subset_size=len(calibration),
            advanced_parameters=parameters,
        )


@contextmanager
def _hide_other_frameworks() -> Iterator[None]:
    """NNCF imports every framework that is installed. That takes seconds and would disturb the
    measurement."""
    absent = [name for name in OTHER_FRAMEWORKS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
