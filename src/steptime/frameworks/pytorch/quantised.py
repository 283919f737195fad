"""int8: PT2E quantisation (torchao) of the exported network, compiled by Inductor, frozen."""

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
QUANTISE = "quantized_decomposed.quantize_per_tensor"
ATEN = torch.ops.aten
SOURCES = {
    ATEN.conv2d.default: nn.Conv2d,
    ATEN.linear.default: nn.Linear,
    ATEN.relu.default: nn.ReLU,
    ATEN.max_pool2d.default: nn.MaxPool2d,
    ATEN.add.Tensor: torch.add,
}
"""The quantiser recognises layers by the module that they came from.

Generated code has no modules, so each node gets the one that fits."""


class QuantisedProgram(PytorchProgram):
    """The fp32 module holds the weights; its quantised copy, for the step's batch size, runs."""

    def __init__(self, work: Work, case: Case) -> None:
        if reason := not_quantisable(work, "PT2E"):
            raise Unsupported(reason)
        super().__init__(work, case)
        self._quantise()

    def facts(self) -> dict[str, Any]:
        samples = sum(len(batch["input"]) for batch in self.work.calibration)
        facts = super().facts()
        facts["quantisation"] = SCHEME
        facts["reduced_range"] = reduced_range()
        facts["calibration_samples"] = samples
        facts["preparation_seconds"] = self.preparation_seconds
        facts["quantised_nodes"] = self.quantised_nodes
        facts["freezing"] = True
        return facts

    def load(self, weights: dict[str, Any]) -> None:
        super().load(weights)
        # Not in the first call, which comes from the constructor of the base class.
        if hasattr(self, "quantised_nodes"):
            self._quantise()

    def predict(self, batch: dict[str, Any]) -> Any:
        """Batches of other sizes go through the same compiled program."""

        def compute(values: Any) -> Any:
            target = np.zeros(len(values), np.int64)
            return PytorchProgram.predict(self, {"input": values, "target": target})

        return compute_in_batches(compute, batch["input"], len(self.input))

    def gradients(self, batch: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        raise Unsupported("A network in int8 has no gradients; use precision=fp32.")

    def _quantise(self) -> None:
        begin = time.perf_counter()
        samples = [self._to_device(batch)[0] for batch in self.work.calibration]
        exported = quantise(self._exportable_module(), samples)
        targets = [str(node.target) for node in exported.graph.nodes]
        self.quantised_nodes = sum(target.startswith(QUANTISE) for target in targets)
        if not self.quantised_nodes:
            raise Unsupported(
                f"{self.work.graph.name}: PT2E found no layer that it quantises; use fp32 or bf16."
            )
        # Inductor finds its int8 kernels only if weights are constants. It compiles at the first
        # call, and until then another program of this process may have turned freezing off.
        torch._inductor.config.freezing = True
        self.network = torch.compile(exported, dynamic=False)
        with torch.inference_mode():
            self.network(self.input)
        self.preparation_seconds = time.perf_counter() - begin

    def _exportable_module(self) -> nn.Module:
        """The same weights in a module without in-place operations, which cannot be exported."""
        module = lower_graph(self.work.graph, overwrite=False).to(self.device, self.dtype)
        weights = self.module.canonical()
        with torch.no_grad():
            for name, value in module.canonical().items():
                value.copy_(weights[name])
        return module.eval()


def quantise(module: nn.Module, samples: list[torch.Tensor]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # It reports CUDA kernels that it cannot load.
        logging.getLogger("torchao").setLevel(logging.CRITICAL)
        # Imported here, because it is slow and the warnings of the import are many.
        import torch._inductor.config
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

        quantizer = x86.X86InductorQuantizer()
        config = x86.get_default_x86_inductor_quantization_config(reduce_range=reduced_range())
        quantizer.set_global(config)
        exported = torch.export.export(module, (samples[0],)).module(check_guards=False)
        for node in exported.graph.nodes:
            if node.target in SOURCES:
                node.meta["source_fn_stack"] = [(node.name, SOURCES[node.target])]
        prepared = prepare_pt2e(exported, quantizer)
        with torch.no_grad():
            for values in samples:
                prepared(values)
        return convert_pt2e(prepared)
