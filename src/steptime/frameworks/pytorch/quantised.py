"""int8 in PyTorch: torchao's PT2E quantisation of the exported network, compiled by Inductor with frozen weights."""

from __future__ import annotations

import logging
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch import nn

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.lowering import lower_graph
from steptime.frameworks.pytorch.program import PytorchProgram
from steptime.graph import Work
from steptime.graph.batches import compute_in_batches
from steptime.graph.quantisation import not_quantisable, reduced_range

SCHEME = "PT2E static, X86InductorQuantizer: U8 activations per tensor, S8 weights per channel"
QUANTISES = "quantized_decomposed.quantize_per_tensor"
ATEN = torch.ops.aten
SOURCES = {
    ATEN.conv2d.default: nn.Conv2d,
    ATEN.linear.default: nn.Linear,
    ATEN.relu.default: nn.ReLU,
    ATEN.max_pool2d.default: nn.MaxPool2d,
    ATEN.add.Tensor: torch.add,
}
"""The quantiser knows layers by the module they came from; generated code has none, so each node is told its own."""


class QuantisedProgram(PytorchProgram):
    """The fp32 module keeps the weights; what runs is the quantised copy of it, made for the step's batch size."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "PT2E"):
            raise Unsupported(reason)
        super().__init__(work, case)
        self._quantise()

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "quantisation": SCHEME,
            "reduced_range": reduced_range(),
            "calibration_samples": sum(len(batch["input"]) for batch in self.work.calibration),
            "preparation_seconds": self.preparation_seconds,
            "quantised_nodes": self.quantised_nodes,
            "freezing": True,
        }

    def load(self, weights: dict[str, Any]) -> None:
        super().load(weights)
        if hasattr(self, "quantised_nodes"):
            self._quantise()

    def predict(self, batch: dict[str, Any]) -> Any:
        """Batches of other sizes go through the same compiled program."""

        def outputs(values: Any) -> Any:
            return PytorchProgram.predict(
                self, {"input": values, "target": np.zeros(len(values), np.int64)}
            )

        return compute_in_batches(outputs, batch["input"], len(self.input))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        raise Unsupported("A network in int8 has no gradients; use precision=fp32.")

    def _quantise(self) -> None:
        begin = time.perf_counter()
        shown = [self._placed(batch)[0] for batch in self.work.calibration]
        exported = quantised(self._plain(), shown)
        self.quantised_nodes = sum(
            str(node.target).startswith(QUANTISES) for node in exported.graph.nodes
        )
        if not self.quantised_nodes:
            raise Unsupported(
                f"{self.work.graph.name}: PT2E found no layer that it quantises; use fp32 or bf16."
            )
        # Inductor finds its int8 kernels only where weights are constants. Compiling waits for the first call, and by
        # then another program of this process may have turned freezing off.
        torch._inductor.config.freezing = True
        self.network = torch.compile(exported, dynamic=False)
        with torch.inference_mode():
            self.network(self.input)
        self.preparation_seconds = time.perf_counter() - begin

    def _plain(self) -> nn.Module:
        """The same weights in a module that overwrites nothing: in-place operations are no part of an export."""
        module = lower_graph(self.work.graph, overwrite=False).to(self.device, self.dtype)
        with torch.no_grad():
            for name, value in module.canonical().items():
                value.copy_(self.module.canonical()[name])
        return module.eval()


def quantised(module: nn.Module, shown: list[torch.Tensor]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torchao").setLevel(
            logging.CRITICAL
        )  # it tells of CUDA kernels that it cannot load
        import torch._inductor.config
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(
            x86.get_default_x86_inductor_quantization_config(reduce_range=reduced_range())
        )
        exported = torch.export.export(module, (shown[0],)).module(check_guards=False)
        for node in exported.graph.nodes:
            if node.target in SOURCES:
                node.meta["source_fn_stack"] = [(node.name, SOURCES[node.target])]
        prepared = prepare_pt2e(exported, quantizer)
        with torch.no_grad():
            for values in shown:
                prepared(values)
        return convert_pt2e(prepared)
