from __future__ import annotations

from pathlib import Path

import pytest

from steptime.store.folder import FolderStore


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "results")
