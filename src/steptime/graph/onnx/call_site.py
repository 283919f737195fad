"""Where one layer's ONNX nodes and constants are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steptime.core.errors import NotInstalled
from steptime.graph.layer import Layer


@dataclass
class CallSite:
    """The tensor that bears the layer's name is its output; names of parts follow it behind a dot."""

    layer: Layer
    dtype: Any  # of all floats
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def op(self) -> Any:
        return self.layer.op

    @property
    def x(self) -> str:
        return self.layer.inputs[0]

    def weight(self, part: str) -> str:
        """Its canonical name, which is the lender's where it is borrowed."""
        return next(name for name in self.layer.weights if name.rpartition(".")[2] == part)

    def bias(self) -> list[str]:
        return [self.weight("bias")] if self.op.bias else []

    def floats(self, part: str, value: Any) -> str:
        return self._constant(part, np.asarray(value, self.dtype))

    def integers(self, part: str, values: Any) -> str:
        return self._constant(part, np.asarray(values, np.int64))

    def add(self, operator: str, *inputs: str, part: str = "", **attributes: Any) -> str:
        """Without `part` it is the layer's last node."""
        output = f"{self.layer.name}.{part}" if part else self.layer.name
        self.nodes.append(
            onnx().helper.make_node(operator, list(inputs), [output], name=output, **attributes)
        )
        return output

    def _constant(self, part: str, value: Any) -> str:
        name = f"{self.layer.name}.{part}"
        self.constants[name] = value
        return name


def onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise NotInstalled(
            "The graph is handed over as an ONNX model; install onnx with: pip install onnx"
        ) from None
    return onnx
