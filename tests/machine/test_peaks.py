from __future__ import annotations

import sys

import pytest

from steptime.machine import peaks

pytestmark = pytest.mark.slow


def test_framework_versions_leave_out_missing_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("jax", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
    assert peaks._framework_versions().keys().isdisjoint({"jax", "pytorch"})
    assert "numpy" in peaks._framework_versions()["numpy"]
