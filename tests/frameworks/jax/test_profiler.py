from __future__ import annotations

from typing import Any

import pytest

from steptime.core.errors import Unsupported
from steptime.core.inspection import BETWEEN
from steptime.frameworks.jax.profiler import summarize


def test_summarize_names_instructions_by_their_origin() -> None:
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
    profile = summarize(spans, {"fusion.3": "conv_general_dilated"}, 100e-6)
    assert {operator.name: round(1e6 * operator.seconds) for operator in profile.operators} == {
        "conv_general_dilated": 60, "copy": 10, BETWEEN: 30,
    }  # fmt: skip
    assert [event["name"] for event in profile.events] == ["fusion.3", "copy.7"]


def test_summarize_refuses_a_trace_without_instructions() -> None:
    with pytest.raises(Unsupported, match="none of the program's instructions"):
        summarize([], {}, 1.0)


def test_program_reports_its_instructions_and_memory(lower: Any) -> None:
    program = lower("images")
    program.step()
    names = {operator.name for operator in program.profile(2).operators}
    assert any("conv" in name for name in names)
    weight_bytes = sum(4 * array.size for array in program.weights().values())
    assert program.memory_account().held["weights"] == weight_bytes
