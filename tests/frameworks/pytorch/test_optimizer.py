"""Its rules are held to the reference's by the contract."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from steptime.core.errors import Unsupported
from steptime.frameworks.pytorch.optimizer import optimizer_for
from steptime.graph import Optimizer


def test_optimizer_for_rejects_unknown_algorithms(lower: Any) -> None:
    with pytest.raises(Unsupported, match="'newton'"):
        lower("perceptron", Optimizer("newton", 0.1))
    with pytest.raises(Unsupported, match="'decoupled momentum'"):
        lower("perceptron", Optimizer("momentum", 0.1, weight_decay=0.1, decoupled=True))


def test_momentum_starts_at_zero_if_loss_scaling_skips_a_step() -> None:
    weight = torch.nn.Parameter(torch.ones(4))
    weight.grad = torch.ones(4)
    torch.use_deterministic_algorithms(True)  # memory that nobody filled holds NaN
    try:
        optimizer: Any = optimizer_for(Optimizer(algorithm="momentum", rate=0.5), [weight])
        for overflow in (1.0, 0.0):  # as the scaler says it to a fused step
            optimizer.grad_scale, optimizer.found_inf = torch.ones(()), torch.tensor(overflow)
            optimizer.step()
    finally:
        torch.use_deterministic_algorithms(False)
    assert weight.tolist() == [0.5] * 4
