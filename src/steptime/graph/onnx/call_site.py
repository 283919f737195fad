"""The ONNX nodes and constants of one layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steptime.core.errors import NotInstalled
from steptime.graph.layer import Layer


@dataclass
class CallSite:
    """The layer's output has the layer's name; other tensors are called `layer.suffix`."""

    layer: Layer
    # Of all floats.
    dtype: Any
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def op(self) -> Any:
        return self.layer.op

    @property
    def x(self) -> str:
        return self.layer.inputs[0]

    def weight(self, role: str) -> str:
        """The canonical name of a weight; a tied one has the name of its owner's."""
        return next(name for name in self.layer.weights if name.rpartition(".")[2] == role)

    def bias(self) -> list[str]:
        return [self.weight("bias")] if self.op.bias else []

    def floats(self, suffix: str, value: Any) -> str:
        return self._constant(suffix, np.asarray(value, self.dtype))

    def integers(self, suffix: str, values: Any) -> str:
        return self._constant(suffix, np.asarray(values, np.int64))

    def add(self, operator: str, *inputs: str, suffix: str = "", **attributes: Any) -> str:
        """Adds a node and returns the name of its output. Without `suffix` it is the last one."""
        output = f"{self.layer.name}.{suffix}" if suffix else self.layer.name
        make_node = onnx().helper.make_node
        self.nodes.append(make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def _constant(self, suffix: str, value: Any) -> str:
        name = f"{self.layer.name}.{suffix}"
        self.constants[name] = value
        return name


def onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise NotInstalled(
            "The graph is passed on as an ONNX model; install onnx with: pip install onnx"
        ) from None
    return onnx
