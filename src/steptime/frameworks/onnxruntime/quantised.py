"""int8 in ONNX Runtime: the graph's own ONNX model, quantised statically (QDQ) from batches that show the ranges."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.onnxruntime.program import OnnxruntimeProgram
from steptime.graph import Work
from steptime.graph.batches import compute_in_batches
from steptime.graph.quantisation import not_quantisable, reduced_range

SCHEME = "static QDQ, U8 activations per tensor (not the outputs), S8 weights per channel, ranges by minimum and maximum"


class QuantisedProgram(OnnxruntimeProgram):
    """Quantised once, for the step's batch size: predictions of other sizes go through the same session."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "ONNX Runtime"):
            raise Unsupported(reason)
        self.calibration = [{work.graph.input.name: batch["input"]} for batch in work.calibration]
        self.prepared = b""
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "quantisation": SCHEME,
            "reduced_range": reduced_range(),
            "calibration_samples": sum(
                len(next(iter(batch.values()))) for batch in self.calibration
            ),
            "preparation_seconds": self.preparation_seconds,
            "quantised_nodes": self.quantised_nodes,
        }

    def _build(self) -> None:
        begin = time.perf_counter()
        self.prepared = quantised(super()._model(len(self.input)), self.calibration)
        self.preparation_seconds = time.perf_counter() - begin
        nodes = onnx.load_from_string(self.prepared).graph.node
        self.quantised_nodes = sum(node.op_type == "QuantizeLinear" for node in nodes)
        super()._build()

    def _model(self, batch_size: int) -> bytes:
        return self.prepared

    def _outputs(self, values: Any) -> Any:
        return compute_in_batches(super()._outputs, values, len(self.input))


class Batches(CalibrationDataReader):
    def __init__(self, batches: list[dict[str, Any]]) -> None:
        self.batches = iter(batches)

    def get_next(self) -> dict[str, Any] | None:
        return next(self.batches, None)


def quantised(model: bytes, calibration: list[dict[str, Any]]) -> bytes:
    logging.getLogger().setLevel(
        logging.ERROR
    )  # it warns that pre-processing is advised after it was done
    with tempfile.TemporaryDirectory() as folder:
        source, clean, target = (
            Path(folder) / name for name in ("source.onnx", "clean.onnx", "quantised.onnx")
        )
        source.write_bytes(model)
        # Folds normalisation into convolutions. Shapes are all known, so their symbolic inference has nothing to do.
        quant_pre_process(source, clean, skip_symbolic_shape=True)
        quantize_static(
            clean,
            target,
            Batches(calibration),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=reduced_range(),
        )
        return with_plain_output(onnx.load(target)).SerializeToString()


def with_plain_output(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without the last pair of quantisation and back: nothing computes with it, and it cuts off every logit beyond what
    calibration saw. Only sure answers have such logits."""
    nodes = {name: node for node in model.graph.node for name in node.output}
    for output in model.graph.output:
        back = nodes[output.name]
        forth = nodes.get(back.input[0]) if back.op_type == "DequantizeLinear" else None
        if forth is None or forth.op_type != "QuantizeLinear":
            continue
        maker = nodes[forth.input[0]]
        maker.output[list(maker.output).index(forth.input[0])] = output.name
        model.graph.node.remove(back)
        model.graph.node.remove(forth)
    return model
