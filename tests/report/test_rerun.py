"""Commands that measure a stored run again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factories import make_record
from steptime.core.protocol import Protocol, preset
from steptime.core.record import Record
from steptime.report.rerun import rerun_command


def record_of(protocol: Protocol) -> Record:
    record = make_record(processes=1)
    return Record(attempts=(replace(record.attempts[0], protocol=protocol),))


@pytest.mark.parametrize("name", ["quick", "single"])
def test_rerun_command_for_an_interval_uses_a_preset_that_can_give_one(name: str) -> None:
    command = rerun_command(record_of(preset(name)), with_interval=True)
    assert command.endswith("--preset standard --again") and "protocol." not in command


def test_rerun_command_for_an_interval_drops_numbers_of_processes() -> None:
    protocol = replace(preset("gold"), processes_least=1, processes_most=2, least_steps=7)
    command = rerun_command(record_of(protocol), with_interval=True)
    assert "processes" not in command and "--set protocol.least_steps=7" in command
    assert command.endswith("--preset gold --again")


def test_rerun_command_writes_lists_as_set_reads_them() -> None:
    command = rerun_command(record_of(replace(preset("standard"), pair_looks=(4, 8))))
    assert "--set protocol.pair_looks=4,8" in command
