"""Its rules are held to the reference's by the contract."""

from __future__ import annotations

from typing import Any

import pytest

from steptime.core.errors import Unsupported
from steptime.graph import Optimizer


def test_an_unknown_optimiser_is_a_reason(lower: Any) -> None:
    with pytest.raises(Unsupported, match="'newton'"):
        lower("perceptron", Optimizer("newton", 0.1))
    with pytest.raises(Unsupported, match="'decoupled momentum'"):
        lower("perceptron", Optimizer("momentum", 0.1, weight_decay=0.1, decoupled=True))
