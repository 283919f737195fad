from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def jax() -> Any:
    found = pytest.importorskip("jax", reason="JAX is not installed")
    if find_spec("jax_cuda12_plugin") or find_spec("jax_cuda13_plugin"):
        found.config.update(
            "jax_platforms", "cuda,cpu"
        )  # a worker has one device; these tests have both
    return found


@pytest.fixture
def own() -> dict[str, str]:
    return {"framework": "jax", "mode": "compiled"}
