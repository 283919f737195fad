"""What the generated line of a layer may refer to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steptime.graph import Layer


@dataclass
class CallSite:
    """One line of generated code: the variables, weights and constants of a layer."""

    layer: Layer
    # Names of variables.
    output: str
    inputs: list[str]
    # By role: the expression that reads the weight.
    weights: dict[str, str]
    # The index of the input that the result may overwrite.
    overwrites: int | None = None
    # Of all slices, if several slices are one split.
    sizes: tuple[int, ...] = ()
    # Arrays that the line needs besides weights, by flat name.
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def op(self) -> Any:
        return self.layer.op

    def constant(self, name: str, value: Any) -> str:
        """The expression that reads the constant."""
        flat = flat_name(f"{self.layer.name}.{name}")
        self.constants[flat] = value
        return f'b["{flat}"]'


def flat_name(canonical: str) -> str:
    """The names of a module's weights cannot have dots."""
    return canonical.replace(".", "__")
