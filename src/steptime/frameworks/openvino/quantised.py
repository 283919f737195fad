"""int8 in OpenVINO: the graph's own ONNX model quantised by NNCF, from batches that show the ranges."""

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
    "NNCF post-training with bias correction, symmetric weights per channel, activations per tensor, "
    "ranges by minimum and maximum"
)
OTHERS = ("torch", "tensorflow", "jax")


class QuantisedProgram(OpenvinoProgram):
    """Quantised once, for the step's batch size: predictions of other sizes go through the same model."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "NNCF"):
            raise Unsupported(reason)
        self.calibration = [batch["input"] for batch in work.calibration]
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "quantisation": SCHEME,
            "reduced_range": reduced_range(),
            "calibration_samples": sum(map(len, self.calibration)),
            "preparation_seconds": self.preparation_seconds,
            "quantised_nodes": self.quantised_nodes,
        }

    def _model(self, batch_size: int) -> Any:
        begin = time.perf_counter()
        model = quantised(super()._model(batch_size), self.calibration)
        self.preparation_seconds = time.perf_counter() - begin
        self.quantised_nodes = sum(
            node.get_type_name() == "FakeQuantize" for node in model.get_ops()
        )
        return model

    def _outputs(self, values: Any) -> Any:
        return compute_in_batches(super()._outputs, values, len(self.input))


def quantised(model: bytes, calibration: list[Any]) -> Any:
    with _alone():
        import nncf

        nncf.set_log_level(logging.ERROR)
        # NNCF's own choice is the mean of the batches' maxima: it cuts off what the larger ones reach.
        ranges = nncf.quantization.range_estimator.RangeEstimatorParametersSet.MINMAX
        fix = nncf.OverflowFix.ENABLE if reduced_range() else nncf.OverflowFix.DISABLE
        return nncf.quantize(
            openvino.Core().read_model(model),
            nncf.Dataset(calibration),
            target_device=nncf.TargetDevice.CPU,
            subset_size=len(calibration),
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=fix, activations_range_estimator_params=ranges
            ),
        )


@contextmanager
def _alone() -> Iterator[None]:
    """NNCF imports every framework that it finds, which would cost seconds and disturb what is measured."""
    absent = [name for name in OTHERS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
