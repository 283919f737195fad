"""Records of PyTorch's benchmark database."""

from __future__ import annotations

import json
from collections.abc import Callable

from steptime.formats import Reading

Read = Callable[..., Reading]

RECORD = {
    "benchmark": {"name": "b", "mode": "inference", "extra_info": {"device": "cpu"}},
    "model": {"name": "m", "backend": "eager"},
    "metric": {"name": "latency(ms)", "benchmark_values": [1, 3, 2]},
}


def test_records_are_read_from_arrays_and_lines(read: Read) -> None:
    line = json.dumps(RECORD)
    for text in (f"[{line}]", f"{line}\n{line}\n", f"{line}\n[{line}]\n"):
        found = read("a.json", text)
        assert {run.metrics["step_time"] for run in found.runs} == {0.002} and len(
            found.runs
        ) == text.count("latency")


def test_unknown_metric_is_kept_in_more(read: Read) -> None:
    record = RECORD | {
        "metric": {"name": "compile_time_instruction_count", "benchmark_values": [3086359081]}
    }
    run = read("a.json", json.dumps([record])).runs[0]
    assert run.metrics == {} and run.more["values"] == [3086359081.0]


def test_record_without_values_is_skipped(read: Read) -> None:
    found = read("a.json", '[{}, {"repo": "pytorch/pytorch", "workflow_id": 1}]')
    assert not found.runs and len(found.skipped) == 2
