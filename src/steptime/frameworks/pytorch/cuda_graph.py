"""A step captured once as a CUDA graph and replayed: the host launches no kernels.

A compiled step is captured whole: no guards, no launches and no copies of its inputs remain. Random
numbers still differ from step to step, because PyTorch moves its generator on at every replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# PyTorch's own advice: libraries choose algorithms and allocate before the capture. Compilers
# compile, and tune their kernels.
WARMUP_STEPS = 3


class CudaGraphStep:
    """Captures at the first call. Training steps of the warm-up are undone afterwards."""

    def __init__(
        self,
        step: Callable[[], Any],
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
    ) -> None:
        self.step = step
        self.module = module
        self.optimizer = optimizer
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: Any = None

    def __call__(self) -> Any:
        if self.graph is None:
            self._capture()
        self.graph.replay()  # type: ignore[union-attr]
        return self.result

    def _capture(self) -> None:
        before = {name: value.clone() for name, value in self.module.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        # Gradients must be allocated in the graph's own memory.
        self.module.zero_grad()
        graph = torch.cuda.CUDAGraph()
        # On the same stream as the warm-up: a compiled function may be valid for one stream only,
        # and to compile again would break the capture.
        with torch.cuda.graph(graph, stream=side):
            self.result = self.step()
        with torch.no_grad():
            self._restore(before)
        self.graph = graph

    def _restore(self, before: dict[str, torch.Tensor]) -> None:
        """In place, because the graph has the addresses."""
        for name, value in self.module.state_dict().items():
            value.copy_(before[name])
        if self.optimizer is None:
            return
        # All optimisers start from zeros.
        for state in self.optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    value.zero_()
