from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def jax() -> Any:
    module = pytest.importorskip("jax", reason="JAX is not installed")
    if find_spec("jax_cuda12_plugin") or find_spec("jax_cuda13_plugin"):
        # A worker uses one device; these tests use both.
        module.config.update("jax_platforms", "cuda,cpu")
    return module


@pytest.fixture
def defaults() -> dict[str, str]:
    return {"framework": "jax", "mode": "compiled"}
