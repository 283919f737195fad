"""A graph as an ONNX model: what it computes in inference, for one batch size. Weights keep their canonical names.

ONNX's own rounding up of pools is never used: its readers disagree about the last window, so the padding says all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steptime.core.errors import Unsupported
from steptime.graph.graph import Graph
from steptime.graph.layer import Layer
from steptime.graph.onnx import images, sequences, simple
from steptime.graph.onnx.call_site import CallSite, onnx
from steptime.graph.weights import check

DTYPES = {"float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float64": "DOUBLE"}
OPSET = 17  # old enough for every reader
OPSET_BFLOAT16 = 22  # the first in which convolutions and pools know the type
IR_VERSIONS = {OPSET: 8, OPSET_BFLOAT16: 10}  # those that came with the opsets
OPS: dict[str, Callable[[CallSite], None]] = {**simple.OPS, **images.OPS, **sequences.OPS}


def onnx_model(
    graph: Graph, weights: dict[str, Any], *, batch_size: int, dtype: str = "float32"
) -> Any:
    """An `onnx.ModelProto`. Floats are all of `dtype`, the input and output too; tokens are int64."""
    check(weights, graph)
    helper, code = onnx().helper, getattr(onnx().TensorProto, DTYPES[dtype])
    own = helper.tensor_dtype_to_np_dtype(code)
    sites = [_written(layer, graph, own) for layer in graph if layer.inputs]
    constants = {name: np.asarray(array).astype(own) for name, array in weights.items()}
    for site in sites:
        constants |= site.constants
    body = helper.make_graph(
        [node for site in sites for node in site.nodes],
        graph.name,
        [_value(graph.input, batch_size, code)],
        [_value(graph[graph.output], batch_size, code)],
        [onnx().numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = OPSET_BFLOAT16 if dtype == "bfloat16" else OPSET
    return helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSIONS[opset],
        producer_name="steptime",
    )


def _written(layer: Layer, graph: Graph, dtype: Any) -> CallSite:
    if layer.op.name not in OPS:
        raise Unsupported(
            f"{graph.name}: ONNX has no lowering of {layer.op.name!r} (layer {layer.name!r})."
        )
    site = CallSite(layer, dtype)
    OPS[layer.op.name](site)
    return site


def _value(layer: Layer, batch_size: int, code: int) -> Any:
    if layer.vocabulary:
        code = onnx().TensorProto.INT64
    return onnx().helper.make_tensor_value_info(layer.name, code, [batch_size, *layer.shape])
