from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.live


def test_memory_limit_of_the_kernel_is_out_of_memory(
    clusters: ModuleType, open_folder: Path, sit_down: Callable[[Any], Any]
) -> None:
    if not clusters.has_control_groups():
        pytest.skip("control groups of the first version cannot be written here")
    with clusters.VirtualCluster(open_folder / "limited", control_groups=True) as limited:
        desk = sit_down(limited)
        desk.submit(desk.plan("hoards", "calm"))
        desk.until_over()
        greedy, calm = sorted(desk.collect(), key=lambda record: record.case.batch_size)
    assert (greedy.status, calm.status) == ("out_of_memory", "ok")
