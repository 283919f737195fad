"""A step shared by ranks must equal the step of one process with the complete batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime import plugins
from steptime.core.case import ALL_REDUCE, Case
from steptime.core.errors import NotInstalled
from steptime.ranks import launcher

SCRIPT = Path(__file__).with_name("one_rank.py")


def two_ranks(framework: str, exchange: str) -> Case:
    """In the framework's first mode, or why it cannot."""
    try:
        folder = plugins.load("frameworks", framework)
        case = Case(
            workload="small",
            framework=framework,
            mode=folder.MODES[0],
            devices=2,
            exchange=exchange,
        )
        reason = folder.unsupported(case)
    except (ImportError, NotInstalled) as problem:
        reason = str(problem)
    return pytest.skip(reason) if reason else case


def after_steps(case: Case, ranks: int, folder: Path) -> list[dict[str, Any]]:
    """The weights of each rank, and how many bytes it exchanged."""
    out = folder / f"of-{ranks}"
    started = case if ranks > 1 else Case(workload=case.workload)
    command = [
        sys.executable,
        str(SCRIPT),
        case.framework,
        case.mode,
        started.exchange,
        str(ranks),
        str(out),
    ]
    assert launcher.run_ranks(command, started, folder / "journal.jsonl") is None
    return [dict(np.load(f"{out}.{rank}.npz")) for rank in range(ranks)]


@pytest.mark.live
@pytest.mark.parametrize("exchange", ALL_REDUCE)
@pytest.mark.parametrize("framework", plugins.names("frameworks"))
def test_two_ranks_match_one_process_with_both_batches(
    framework: str, exchange: str, tmp_path: Path
) -> None:
    case = two_ranks(framework, exchange)
    [alone], shared = after_steps(case, 1, tmp_path), after_steps(case, 2, tmp_path)
    assert alone.pop("moved_bytes") == alone.pop("tiny_bytes") == 0
    assert all(1 <= rank.pop("tiny_bytes") <= 8 for rank in shared)  # one number
    assert [rank.pop("moved_bytes") for rank in shared] == [
        sum(values.nbytes for values in alone.values())
    ] * 2
    for name, values in alone.items():
        assert np.array_equal(shared[0][name], shared[1][name])
        np.testing.assert_allclose(shared[0][name], values, rtol=1e-4, atol=1e-6)
