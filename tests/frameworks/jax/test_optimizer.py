"""Its rules are held to the reference's by the contract."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from steptime.core.errors import NotInstalled, Unsupported
from steptime.graph import Optimizer


def test_optimizer_for_refuses_an_unknown_algorithm(lower: Any) -> None:
    with pytest.raises(Unsupported, match="'newton'"):
        lower("perceptron", Optimizer("newton", 0.1))


def test_optimizer_for_is_the_only_user_of_optax(
    lower: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    assert lower("perceptron", phase="inference").step() is not None
    with pytest.raises(NotInstalled, match="pip install optax"):
        lower("perceptron")
