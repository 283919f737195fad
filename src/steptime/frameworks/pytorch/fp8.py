"""fp8: dense layers multiply in e4m3 with one scale per tensor, everything else stays bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.lowering import Lowered, lower_graph
from steptime.frameworks.pytorch.ops import OPS, CallSite, flat_name
from steptime.frameworks.pytorch.program import PytorchProgram
from steptime.graph import Layer, Work

FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max
SMALLEST = 1e-12  # the least maximum, for a tensor of zeros
TILE = 16  # what the matrix units take at once


class Fp8Program(PytorchProgram):
    """Weights are scaled once, at loading; activations in each step, by their largest value."""

    def __init__(self, work: Work, case: Case) -> None:
        dense_layers = [layer for layer in work.graph if layer.op.name == "dense"]
        self.fp8_layers = [layer.name for layer in dense_layers if fits_tiles(layer)]
        self.bf16_layers = {
            layer.name: tile_mismatch(layer) for layer in dense_layers if not fits_tiles(layer)
        }
        if not self.fp8_layers:
            raise Unsupported(
                f"{work.graph.name} has no dense layer in multiples of {TILE}, "
                "so nothing would be fp8."
            )
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        graph = self.work.graph
        fp8_flops = sum(graph.layer_flops(graph[name])[0] for name in self.fp8_layers)
        facts = super().facts()
        facts["fp8"] = {
            "format": "e4m3fn",
            "weights": "static, per tensor",
            "activations": "dynamic, per tensor",
            "fast_accumulation": True,
        }
        facts["fp8_layers"] = self.fp8_layers
        facts["bf16_dense_layers"] = self.bf16_layers
        facts["fp8_flops_share"] = fp8_flops / graph.forward_flops
        return facts

    def load(self, weights: dict[str, Any]) -> None:
        super().load(weights)
        for name in self.fp8_layers:
            array = np.ascontiguousarray(weights[f"{name}.weight"], np.float32)
            weight, scale = to_fp8(torch.from_numpy(array).to(self.device))
            self._set_buffer(flat_name(f"{name}.weight_fp8"), weight)
            self._set_buffer(flat_name(f"{name}.weight_scale"), scale)

    def _set_buffer(self, name: str, value: torch.Tensor) -> None:
        """In place from the second time on: a compiled or captured step has the address."""
        buffer = self.module._buffers[name]
        if buffer is not None and buffer.dtype == value.dtype and buffer.shape == value.shape:
            buffer.copy_(value)
        else:
            self.module._buffers[name] = value

    def _lower(self, opaque: Any) -> Lowered:
        ops = dict(OPS)
        ops["dense"] = self._dense
        functions = {"fp8_linear": fp8_linear}
        return lower_graph(self.work.graph, opaque=opaque, ops=ops, functions=functions)

    def _dense(self, site: CallSite) -> str:
        if site.layer.name in self.fp8_layers:
            return fp8_dense(site)
        return OPS["dense"](site)


def fp8_dense(site: CallSite) -> str:
    # Placeholders: `load` puts the scaled weight in their place.
    weight = site.constant("weight_fp8", np.zeros(1, np.float32))
    scale = site.constant("weight_scale", np.zeros(1, np.float32))
    return f"fp8_linear({site.inputs[0]}, {weight}, {scale}, {site.weights.get('bias')})"


def fp8_linear(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    rows, rows_scale = to_fp8(x.reshape(-1, x.shape[-1]))
    product = torch._scaled_mm(
        rows,
        weight.t(),
        scale_a=rows_scale,
        scale_b=scale,
        bias=bias,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )
    return product.view(*x.shape[:-1], weight.shape[0])


def to_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers that fill the format's range, and the scale to multiply them by."""
    scale = x.abs().amax().float().clamp(min=SMALLEST) / LARGEST
    return (x.float() / scale).clamp(-LARGEST, LARGEST).to(FP8), scale


def fits_tiles(layer: Layer) -> bool:
    return layer.input_shapes[0][-1] % TILE == 0 and layer.shape[-1] % TILE == 0


def tile_mismatch(layer: Layer) -> str:
    return f"{layer.input_shapes[0][-1]} × {layer.shape[-1]} is not in multiples of {TILE}"
