"""Descriptions of systems."""

from __future__ import annotations

from collections.abc import Callable

from steptime.formats import Reading
from steptime.formats._mlperf import system

Read = Callable[..., Reading]


def test_description_has_no_rows(read: Read) -> None:
    text = '{"accelerator_model_name": "T4", "host_processor_model_name": "Xeon"}'
    found = read("systems/a.json", text)
    assert found.source == "mlperf_systems" and not found.runs


def test_placeholders_become_empty() -> None:
    told = system(
        {
            "accelerator_model_name": "NVIDIA V100",
            "accelerators_per_node": "8",
            "accelerator_interconnect": "TODO",
        }
    )
    assert told["interconnect"] == "" and told["devices"] == 8 and told["nodes"] == 1
