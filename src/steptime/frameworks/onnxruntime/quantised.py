"""int8 in ONNX Runtime: the ONNX model of the graph, quantised statically (QDQ).

Calibration batches show the ranges of values."""

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

SCHEME = (
    "static QDQ, U8 activations per tensor (not the outputs), S8 weights per channel, "
    "ranges by minimum and maximum"
)


class QuantisedProgram(OnnxruntimeProgram):
    """Quantised once, for the step's batch size. Predictions of other sizes use the same
    session."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "ONNX Runtime"):
            raise Unsupported(reason)
        input_name = work.graph.input.name
        self.calibration = [{input_name: batch["input"]} for batch in work.calibration]
        self.calibration_samples = sum(len(batch["input"]) for batch in work.calibration)
        self.quantised_model = b""
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        facts["quantisation"] = SCHEME
        facts["reduced_range"] = reduced_range()
        facts["calibration_samples"] = self.calibration_samples
        facts["preparation_seconds"] = self.preparation_seconds
        facts["quantised_nodes"] = self.quantised_nodes
        return facts

    def _build(self) -> None:
        begin = time.perf_counter()
        self.quantised_model = quantise(super()._model(len(self.input)), self.calibration)
        self.preparation_seconds = time.perf_counter() - begin
        nodes = onnx.load_from_string(self.quantised_model).graph.node
        self.quantised_nodes = sum(node.op_type == "QuantizeLinear" for node in nodes)
        super()._build()

    def _model(self, batch_size: int) -> bytes:
        return self.quantised_model

    def _outputs(self, values: Any) -> Any:
        return compute_in_batches(super()._outputs, values, len(self.input))


class CalibrationBatches(CalibrationDataReader):
    def __init__(self, batches: list[dict[str, Any]]) -> None:
        self.batches = iter(batches)

    def get_next(self) -> dict[str, Any] | None:
        return next(self.batches, None)


def quantise(model: bytes, calibration: list[dict[str, Any]]) -> bytes:
    # It advises pre-processing even after that was done.
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.onnx"
        preprocessed = Path(folder) / "preprocessed.onnx"
        target = Path(folder) / "quantised.onnx"
        source.write_bytes(model)
        # Folds normalisation into convolutions. The model has all shapes, so there is nothing to
        # infer from symbols.
        quant_pre_process(source, preprocessed, skip_symbolic_shape=True)
        quantize_static(
            preprocessed,
            target,
            CalibrationBatches(calibration),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=reduced_range(),
        )
        return remove_output_quantisation(onnx.load(target)).SerializeToString()


def remove_output_quantisation(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the last pair of nodes that quantises and dequantises.

    Nothing computes with the quantised outputs, and they cut off every logit beyond the range that
    calibration saw. Only confident answers have such logits."""
    nodes = {name: node for node in model.graph.node for name in node.output}
    for output in model.graph.output:
        dequantise = nodes[output.name]
        if dequantise.op_type != "DequantizeLinear":
            continue
        quantise_node = nodes.get(dequantise.input[0])
        if quantise_node is None or quantise_node.op_type != "QuantizeLinear":
            continue
        tensor = quantise_node.input[0]
        producer = nodes[tensor]
        producer.output[list(producer.output).index(tensor)] = output.name
        model.graph.node.remove(dequantise)
        model.graph.node.remove(quantise_node)
    return model
