from __future__ import annotations

from typing import Any

import pytest

from steptime.core.errors import Unsupported
from steptime.core.inspection import BETWEEN
from steptime.frameworks.jax.profiler import seen


def test_an_instruction_is_called_what_the_program_called_it() -> None:
    spans = [
        {
            "ph": "X",
            "name": "fusion.3",
            "ts": 0,
            "dur": 60,
            "tid": 1,
            "args": {"hlo_op": "fusion.3"},
        },
        {"ph": "X", "name": "copy.7", "ts": 70, "dur": 10, "tid": 1, "args": {"hlo_op": "copy.7"}},
        {"ph": "X", "name": "$file.py:1 f", "ts": 0, "dur": 90, "tid": 2},
    ]
    found = seen(spans, {"fusion.3": "conv_general_dilated"}, 100e-6)
    assert {one.name: round(1e6 * one.seconds) for one in found.operators} == {
        "conv_general_dilated": 60, "copy": 10, BETWEEN: 30,
    }  # fmt: skip
    assert [event["name"] for event in found.events] == ["fusion.3", "copy.7"]


def test_a_trace_without_instructions_is_told() -> None:
    with pytest.raises(Unsupported, match="none of the program's instructions"):
        seen([], {}, 1.0)


def test_a_step_tells_its_instructions_and_its_memory(lower: Any) -> None:
    program = lower("images")
    program.step()
    names = {one.name for one in program.watch(2).operators}
    assert any("conv" in name for name in names)
    own = sum(4 * array.size for array in program.weights().values())
    assert program.account().held["weights"] == own
