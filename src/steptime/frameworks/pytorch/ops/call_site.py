"""Where a layer's line of generated code is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steptime.graph import Layer


@dataclass
class CallSite:
    """Where a layer's line is written: what it may refer to."""

    layer: Layer
    output: str  # variables
    inputs: list[str]
    weights: dict[str, str]  # part -> the expression that reads it
    overwrites: int | None = None  # the input whose memory the result may take
    sizes: tuple[int, ...] = ()  # of all pieces, where several slices are one cut
    constants: dict[str, Any] = field(
        default_factory=dict
    )  # arrays that the line needs besides weights, by own name

    @property
    def op(self) -> Any:
        return self.layer.op

    def constant(self, part: str, value: Any) -> str:
        own = own_name(f"{self.layer.name}.{part}")
        self.constants[own] = value
        return f'b["{own}"]'


def own_name(canonical: str) -> str:
    """A module's weights cannot have dots in their names."""
    return canonical.replace(".", "__")
