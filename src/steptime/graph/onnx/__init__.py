"""A graph as an ONNX model: its inference, for one batch size. Weights keep canonical names.

The `ceil_mode` of ONNX pools is never used, because runtimes disagree about the last window.
Explicit padding takes its place."""

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
# Old enough for every runtime.
OPSET = 17
# The first in which convolutions and pools take bfloat16.
OPSET_BFLOAT16 = 22
# The IR versions that came with these opsets.
IR_VERSIONS = {OPSET: 8, OPSET_BFLOAT16: 10}
OPS: dict[str, Callable[[CallSite], None]] = {**simple.OPS, **images.OPS, **sequences.OPS}


def onnx_model(
    graph: Graph, weights: dict[str, Any], *, batch_size: int, dtype: str = "float32"
) -> Any:
    """An `onnx.ModelProto`. All floats are `dtype`, the input and output too; tokens are int64."""
    check(weights, graph)
    helper = onnx().helper
    code = getattr(onnx().TensorProto, DTYPES[dtype])
    np_dtype = helper.tensor_dtype_to_np_dtype(code)
    constants = {name: np.asarray(array).astype(np_dtype) for name, array in weights.items()}
    nodes = []
    for layer in graph:
        if layer.inputs:
            site = _write_layer(layer, graph, np_dtype)
            nodes += site.nodes
            constants |= site.constants
    from_array = onnx().numpy_helper.from_array
    body = helper.make_graph(
        nodes=nodes,
        name=graph.name,
        inputs=[_value_info(graph.input, batch_size, code)],
        outputs=[_value_info(graph[graph.output], batch_size, code)],
        initializer=[from_array(array, name) for name, array in constants.items()],
    )
    opset = OPSET_BFLOAT16 if dtype == "bfloat16" else OPSET
    return helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSIONS[opset],
        producer_name="steptime",
    )


def _write_layer(layer: Layer, graph: Graph, dtype: Any) -> CallSite:
    if layer.op.name not in OPS:
        raise Unsupported(
            f"{graph.name}: ONNX has no lowering of {layer.op.name!r} (layer {layer.name!r})."
        )
    site = CallSite(layer, dtype)
    OPS[layer.op.name](site)
    return site


def _value_info(layer: Layer, batch_size: int, code: int) -> Any:
    if layer.vocabulary:
        code = onnx().TensorProto.INT64
    return onnx().helper.make_tensor_value_info(layer.name, code, [batch_size, *layer.shape])
