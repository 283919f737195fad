"""A graph as an ONNX model: what it computes in inference, for one batch size. Weights keep their canonical names.

ONNX's own rounding up of pools is never used: its readers disagree about the last window, so the padding says all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steptime.core.errors import NotInstalled, Unsupported
from steptime.graph.graph import Graph
from steptime.graph.layer import Layer
from steptime.graph.weights import check

DTYPES = {"float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float64": "DOUBLE"}
OPSET = 17  # old enough for every reader
OPSET_BFLOAT16 = 22  # the first in which convolutions and pools know the type
IR_VERSIONS = {OPSET: 8, OPSET_BFLOAT16: 10}  # those that came with the opsets
GATES = (0, 3, 1, 2)  # ours are input, forget, candidate, output; ONNX wants input, output, forget, candidate


@dataclass
class Site:
    """Where a layer's nodes are written. The tensor that bears the layer's name is its output."""

    layer: Layer
    dtype: Any
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Any:
        return self.layer.kind

    @property
    def x(self) -> str:
        return self.layer.inputs[0]

    def weight(self, part: str) -> str:
        return f"{self.layer.name}.{part}"

    def bias(self) -> list[str]:
        return [self.weight("bias")] if self.kind.bias else []

    def constant(self, part: str, value: Any) -> str:
        name = self.weight(part)
        self.constants[name] = value
        return name

    def add(self, operator: str, *inputs: str, part: str = "", **attributes: Any) -> str:
        """Without `part` it is the layer's last node."""
        output = self.weight(part) if part else self.layer.name
        self.nodes.append(_onnx().helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output


def onnx_model(graph: Graph, weights: dict[str, Any], *, batch_size: int, dtype: str = "float32") -> Any:
    """An `onnx.ModelProto`. Floats are all of `dtype`, the input and output too; tokens are int64."""
    check(weights, graph)
    helper, code = _onnx().helper, getattr(_onnx().TensorProto, DTYPES[dtype])
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
        [_onnx().numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = OPSET_BFLOAT16 if dtype == "bfloat16" else OPSET
    return helper.make_model(
        body, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSIONS[opset], producer_name="steptime"
    )


def _written(layer: Layer, graph: Graph, dtype: Any) -> Site:
    if layer.kind.name not in KINDS:
        raise Unsupported(f"{graph.name}: ONNX has no lowering of {layer.kind.name!r} (layer {layer.name!r}).")
    site = Site(layer, dtype)
    KINDS[layer.kind.name](site)
    return site


def _value(layer: Layer, batch_size: int, code: int) -> Any:
    onnx = _onnx()
    if layer.vocabulary:
        code = onnx.TensorProto.INT64
    return onnx.helper.make_tensor_value_info(layer.name, code, [batch_size, *layer.shape])


def add(site: Site) -> None:
    site.add("Add", *site.layer.inputs)


def average_pool(site: Site) -> None:
    site.add("AveragePool", site.x, count_include_pad=0, **_window(site.layer))


def batch_norm(site: Site) -> None:
    parts = [site.weight(part) for part in ("weight", "bias", "running_mean", "running_variance")]
    site.add("BatchNormalization", site.x, *parts, epsilon=site.kind.epsilon)


def conv(site: Site) -> None:
    kind = site.kind
    (top, bottom), (left, right) = kind.padding
    site.add(
        "Conv", site.x, site.weight("weight"), *site.bias(), kernel_shape=kind.kernel, strides=kind.stride,
        pads=(top, left, bottom, right), dilations=kind.dilation, group=kind.groups,
    )  # fmt: skip


def dense(site: Site) -> None:
    if len(site.layer.shape) == 1:
        site.add("Gemm", site.x, site.weight("weight"), *site.bias(), transB=1)
        return
    turned = site.add("Transpose", site.weight("weight"), part="turned", perm=(1, 0))
    if not site.kind.bias:
        site.add("MatMul", site.x, turned)
        return
    site.add("Add", site.add("MatMul", site.x, turned, part="product"), site.weight("bias"))


def dropout(site: Site) -> None:
    site.add("Identity", site.x)


def embedding(site: Site) -> None:
    site.add("Gather", site.weight("weight"), site.x)


def flatten(site: Site) -> None:
    site.add("Flatten", site.x, axis=1)


def global_average_pool(site: Site) -> None:
    site.add("Flatten", site.add("GlobalAveragePool", site.x, part="mean"), axis=1)


def lstm(site: Site) -> None:
    """Time first, because that is the one layout all readers have; a second bias of zeros, because ONNX has two."""
    units = site.kind.units
    rows = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in GATES])
    order = site.constant("gate_order", rows[None])  # two axes, so that Gather puts ONNX's axis of directions in front
    zeros = site.constant("zero_bias", np.zeros((1, 4 * units), site.dtype))
    own = [
        site.add("Gather", site.weight(part), order, part=f"{part}_ordered")
        for part in ("weight_input", "weight_hidden")
    ]
    bias = site.add(
        "Concat", site.add("Gather", site.weight("bias"), order, part="bias_ordered"), zeros, part="biases", axis=1
    )
    sequence = site.add("Transpose", site.x, part="time_first", perm=(1, 0, 2))
    hidden = site.add("LSTM", sequence, *own, bias, part="hidden", hidden_size=units)
    single = site.add("Squeeze", hidden, site.constant("directions", np.array([1])), part="single")
    site.add("Transpose", single, perm=(1, 0, 2))


def max_pool(site: Site) -> None:
    site.add("MaxPool", site.x, **_window(site.layer))


def relu(site: Site) -> None:
    site.add("Relu", site.x)


def sigmoid(site: Site) -> None:
    site.add("Sigmoid", site.x)


def tanh(site: Site) -> None:
    site.add("Tanh", site.x)


KINDS: dict[str, Callable[[Site], None]] = {
    write.__name__: write
    for write in (
        add, average_pool, batch_norm, conv, dense, dropout, embedding, flatten, global_average_pool, lstm, max_pool,
        relu, sigmoid, tanh,
    )
}  # fmt: skip


def _window(layer: Layer) -> dict[str, Any]:
    """A pool that rounds up gets as much padding behind as its last window needs, so that rounding down does it."""
    kind: Any = layer.kind
    behind = [after for _, after in kind.padding]
    if kind.ceil:
        for axis, (before, _) in enumerate(kind.padding):
            end = (layer.shape[1 + axis] - 1) * kind.stride[axis] + kind.kernel[axis]
            behind[axis] = max(end - before - layer.input_shapes[0][1 + axis], 0)
    pads = (kind.padding[0][0], kind.padding[1][0], *behind)
    return {"kernel_shape": kind.kernel, "strides": kind.stride, "pads": pads}


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise NotInstalled("The graph is handed over as an ONNX model; install onnx with: pip install onnx") from None
    return onnx
