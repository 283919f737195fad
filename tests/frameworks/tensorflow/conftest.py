from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def tensorflow() -> Any:
    from steptime.core.errors import NotInstalled
    from steptime.frameworks import tensorflow as folder

    try:
        return folder._tensorflow()
    except NotInstalled as problem:
        pytest.skip(str(problem))


@pytest.fixture
def defaults() -> dict[str, str]:
    return {"framework": "tensorflow", "mode": "graph"}
