"""JAX returns before the work is done, on the CPU too. The engine must not time only the launch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# A step that was only launched lies below 0.5.
LOW, HIGH = 0.8, 1.25


def ratio(turns: int, *arguments: str) -> float:
    """The engine's time of a step over that of the same step with explicit synchronisation."""
    script = [
        sys.executable,
        str(Path(__file__).parent / "interleaved.py"),
        str(LOW),
        str(HIGH),
        str(turns),
    ]
    done = subprocess.run([*script, *arguments], capture_output=True, text=True, check=True)
    engine, by_hand = map(int, done.stdout.split())
    return engine / by_hand


@pytest.mark.live
def test_engine_time_equals_the_synchronised_time() -> None:
    assert LOW <= ratio(5000) <= HIGH


@pytest.mark.live
def test_engine_time_of_a_launch_alone_is_far_shorter() -> None:
    assert ratio(100, "launched") < 0.5


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
def test_step_returns_when_everything_is_ready(lower: Any, jax: Any, phase: str) -> None:
    program = lower("residual", phase=phase)
    output = program.step()
    assert all(leaf.is_ready() for leaf in jax.tree.leaves((program.state, output)))
    assert program.pending == ()


def test_wait_covers_everything_that_a_launch_made(lower: Any, jax: Any) -> None:
    program = lower("residual")
    loss = program.launch()
    assert len(jax.tree.leaves(program.pending)) == len(jax.tree.leaves((program.state, loss)))
    program.wait()
    assert all(leaf.is_ready() for leaf in jax.tree.leaves((program.state, loss)))
