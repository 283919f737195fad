"""What stages, profiler and memory account need to know of a PyTorch program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from steptime.core.case import Case
from steptime.core.program import Program
from steptime.frameworks.pytorch.lowering import Lowered


class TorchProgram(Program, Protocol):
    case: Case
    device: torch.device
    module: Lowered
    network: Any  # the module, compiled if the case says so
    loss: Callable[[torch.Tensor, torch.Tensor], Any]
    optimizer: Any  # None: the phase is not training
    scaler: Any  # None: no loss scaling
    input: torch.Tensor
    target: torch.Tensor
    host: tuple[torch.Tensor, ...]  # the batch in host memory; empty: it stays on the device

    def fetch(self) -> None:
        """Copies the batch from the host to the device."""

    def autocast(self) -> Any:
        """The context in which the forward pass runs."""
