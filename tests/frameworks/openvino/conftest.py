from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def openvino() -> Any:
    """Imported by the folder itself, which keeps its telemetry out."""
    from steptime.core.errors import NotInstalled
    from steptime.frameworks import openvino

    try:
        return openvino._openvino()
    except NotInstalled as problem:
        pytest.skip(str(problem))


@pytest.fixture
def defaults() -> dict[str, str]:
    return {"framework": "openvino", "phase": "inference", "mode": "graph"}
