"""fp8 in PyTorch: dense layers multiply in e4m3 with one scale per tensor, everything else stays bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.lowering import Lowered, lower_graph
from steptime.frameworks.pytorch.ops import OPS, CallSite, own_name
from steptime.frameworks.pytorch.program import PytorchProgram
from steptime.graph import Layer, Work

FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max
SMALLEST = 1e-12  # of a tensor that is all zeros
TILE = 16  # what the matrix units take at once


class Fp8Program(PytorchProgram):
    """Weights are scaled once, when they are loaded; what meets them by its own largest value, in each step."""

    def __init__(self, work: Work, case: Case) -> None:
        dense = [layer for layer in work.graph if layer.op.name == "dense"]
        self.chosen = [layer.name for layer in dense if fits(layer)]
        self.left = {layer.name: why_not(layer) for layer in dense if not fits(layer)}
        if not self.chosen:
            raise Unsupported(
                f"{work.graph.name} has no dense layer in multiples of {TILE}, so nothing would be fp8."
            )
        super().__init__(work, case)

    def facts(self) -> dict[str, Any]:
        graph = self.work.graph
        share = sum(graph.layer_flops(graph[name])[0] for name in self.chosen) / graph.forward_flops
        scaling = {
            "format": "e4m3fn",
            "weights": "static, per tensor",
            "activations": "dynamic, per tensor",
        }
        layers = {
            "fp8_layers": self.chosen,
            "bf16_dense_layers": self.left,
            "fp8_flops_share": share,
        }
        return {**super().facts(), "fp8": {**scaling, "fast_accumulation": True}, **layers}

    def load(self, weights: dict[str, Any]) -> None:
        super().load(weights)
        for name in self.chosen:
            exact = torch.from_numpy(
                np.ascontiguousarray(weights[f"{name}.weight"], np.float32)
            ).to(self.device)
            scaled, scale = in_fp8(exact)
            for part, value in (("weight_fp8", scaled), ("weight_scale", scale)):
                self._keep(own_name(f"{name}.{part}"), value)

    def _keep(self, name: str, value: torch.Tensor) -> None:
        """In place from the second time on: a compiled or captured step knows the memory."""
        known = self.module._buffers[name]
        if known is not None and known.dtype == value.dtype and known.shape == value.shape:
            known.copy_(value)
        else:
            self.module._buffers[name] = value

    def _lowered(self, opaque: Any) -> Lowered:
        ops = {
            **OPS,
            "dense": lambda site: (
                dense(site) if site.layer.name in self.chosen else OPS["dense"](site)
            ),
        }
        return lower_graph(self.work.graph, opaque=opaque, ops=ops, more={"fp8_linear": fp8_linear})


def dense(site: CallSite) -> str:
    weight, scale = (
        site.constant(part, np.zeros(1, np.float32)) for part in ("weight_fp8", "weight_scale")
    )
    return f"fp8_linear({site.inputs[0]}, {weight}, {scale}, {site.weights.get('bias')})"


def fp8_linear(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    rows, own = in_fp8(x.reshape(-1, x.shape[-1]))
    found = torch._scaled_mm(
        rows,
        weight.t(),
        scale_a=own,
        scale_b=scale,
        bias=bias,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )
    return found.view(*x.shape[:-1], weight.shape[0])


def in_fp8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers that fill the format's range, and what to multiply them by."""
    scale = x.abs().amax().float().clamp(min=SMALLEST) / LARGEST
    return (x.float() / scale).clamp(-LARGEST, LARGEST).to(FP8), scale


def fits(layer: Layer) -> bool:
    return layer.input_shapes[0][-1] % TILE == 0 and layer.shape[-1] % TILE == 0


def why_not(layer: Layer) -> str:
    return f"{layer.input_shapes[0][-1]} × {layer.shape[-1]} is not in multiples of {TILE}"
