from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("mode", ["eager", "graph", "session", "xla"])
def test_the_operations_of_a_step_are_named(lower: Any, mode: str) -> None:
    program = lower("residual", mode=mode)
    program.step()
    found = " ".join(program.kernels())
    assert "Conv2D" in found and "MatMul" in found


def test_what_does_no_work_is_left_out_and_the_costliest_is_first() -> None:
    from steptime.frameworks.tensorflow.kernels import costliest

    events = [
        ("a/b:MatMul", 3), ("c:MatMul", 4), ("EagerLocalExecute: Conv2D", 9), ("x:ReadVariableOp", 50),
        ("ParallelFor", 70), ("EagerLocalExecute: __inference_traced_3", 99),
    ]  # fmt: skip
    assert list(costliest(events).items()) == [("Conv2D", 1), ("MatMul", 2)]


def test_compiled_routines_are_those_that_have_an_end() -> None:
    from steptime.frameworks.tensorflow.kernels import costliest

    events = [
        ("add_fusion", 1),
        ("end: add_fusion", 0),
        ("add_fusion.12", 2),
        ("end: add_fusion.12", 0),
        ("traced", 9),
    ]
    assert costliest(events) == {"add_fusion": 2}
