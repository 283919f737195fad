"""JAX goes on before the work is done, on the CPU too: the engine must never time a launch for a step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LOW, HIGH = 0.8, 1.25  # a step that was only launched lies below 0.5


def ratio(turns: int, *words: str) -> float:
    """Engine's time of a step over that of the same step with explicit synchronisation."""
    script = [
        sys.executable,
        str(Path(__file__).parent / "in_turns.py"),
        str(LOW),
        str(HIGH),
        str(turns),
    ]
    done = subprocess.run([*script, *words], capture_output=True, text=True, check=True)
    engine, by_hand = map(int, done.stdout.split())
    return engine / by_hand


@pytest.mark.live
def test_the_engines_time_is_the_explicitly_synchronised_one() -> None:
    assert LOW <= ratio(5000) <= HIGH


@pytest.mark.live
def test_a_step_that_was_only_launched_would_show() -> None:
    assert ratio(100, "launched") < 0.5


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
def test_everything_is_there_when_a_step_returns(lower: Any, jax: Any, phase: str) -> None:
    program = lower("residual", phase=phase)
    output = program.step()
    assert all(leaf.is_ready() for leaf in jax.tree.leaves((program.state, output)))
    assert program.pending == ()


def test_waiting_reaches_all_that_a_launched_step_made(lower: Any, jax: Any) -> None:
    program = lower("residual")
    loss = program.launch()
    assert len(jax.tree.leaves(program.pending)) == len(jax.tree.leaves((program.state, loss)))
    program.wait()
    assert all(leaf.is_ready() for leaf in jax.tree.leaves((program.state, loss)))
