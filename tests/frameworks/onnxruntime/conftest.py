from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def onnxruntime() -> Any:
    pytest.importorskip("onnx", reason="onnx is not installed")
    return pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


@pytest.fixture
def defaults() -> dict[str, str]:
    return {"framework": "onnxruntime", "phase": "inference", "mode": "graph"}
