"""The recorded banks of a loud machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

BANKS = Path(__file__).parents[2] / ".." / "shared" / "data" / "banks"


@pytest.fixture(scope="session")
def bank() -> Callable[[str], dict[str, np.ndarray]]:
    def load(name: str) -> dict[str, np.ndarray]:
        path = BANKS / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"the recorded bank {name} is not here")
        with np.load(path) as arrays:
            return dict(arrays)

    return load
