from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("mode", ["eager", "graph", "session", "xla"])
def test_kernels_of_a_step_include_its_products(lower: Any, mode: str) -> None:
    program = lower("residual", mode=mode)
    program.step()
    names = " ".join(program.kernels())
    assert "Conv2D" in names and "MatMul" in names


def test_costliest_orders_by_time_and_skips_what_does_no_work() -> None:
    from steptime.frameworks.tensorflow.kernels import costliest

    events = [
        ("a/b:MatMul", 3),
        ("c:MatMul", 4),
        ("EagerLocalExecute: Conv2D", 9),
        ("x:ReadVariableOp", 50),
        ("ParallelFor", 70),
        ("EagerLocalExecute: __inference_traced_3", 99),
    ]
    assert list(costliest(events).items()) == [("Conv2D", 1), ("MatMul", 2)]


def test_costliest_counts_compiled_routines_by_their_end_event() -> None:
    from steptime.frameworks.tensorflow.kernels import costliest

    events = [
        ("add_fusion", 1),
        ("end: add_fusion", 0),
        ("add_fusion.12", 2),
        ("end: add_fusion.12", 0),
        ("traced", 9),
    ]
    assert costliest(events) == {"add_fusion": 2}
