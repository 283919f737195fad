"""A step captured once as a CUDA graph and replayed: no launches by the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARMUP_STEPS = (
    3  # PyTorch's own advice: libraries choose algorithms and allocate before the capture
)


class Replay:
    """Captures at the first call. Training steps of the warm-up are undone: the first call is the first step."""

    def __init__(
        self,
        step: Callable[[], Any],
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
    ) -> None:
        self.step, self.module, self.optimizer = step, module, optimizer
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
        self.module.zero_grad()  # gradients must be born in the graph's own memory
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.result = self.step()
        with torch.no_grad():
            self._undo(before)
        self.graph = graph

    def _undo(self, before: dict[str, torch.Tensor]) -> None:
        """In place, because the graph knows addresses. A momentum of zero is where both optimisers start."""
        for name, value in self.module.state_dict().items():
            value.copy_(before[name])
        states = self.optimizer.state.values() if self.optimizer else ()
        for value in (
            value for state in states for value in state.values() if isinstance(value, torch.Tensor)
        ):
            value.zero_()
