"""The power meter's log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

LINE = "Time,07-11-2024 23:35:%02d.000,Watts,%.1f,Volts,239.1,Amps,3.4,PF,0.96,Mark,test\n"


def test_power_is_the_mean_and_energy_the_integral(read: Read) -> None:
    run = read("run_1/spl.txt", LINE % (10, 100.0) + LINE % (11, 200.0) + LINE % (13, 200.0)).runs[
        0
    ]
    assert (
        run.metrics == pytest.approx({"power": 500 / 3, "energy": 150.0 + 400.0})
        and run.more["seconds"] == 3.0
    )


def test_single_reading_is_no_measurement(read: Read) -> None:
    assert not read("run_1/spl.txt", LINE % (10, 100.0)).runs
