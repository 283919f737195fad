"""Everything a process does with a program, on clocks that cost no time."""

from __future__ import annotations

import math

import pytest

from steptime.core.case import Case
from steptime.core.measurement import Measurement
from steptime.core.protocol import Protocol
from steptime.engine.meter import Meter


@pytest.fixture
def measured():
    """Everything a process does with a program, on the program's own clock."""

    def measure(
        program, case: Case, protocol: Protocol, nvml=None, deadline_ns: float = math.inf
    ) -> Measurement:
        meter = Meter(
            program,
            case,
            protocol,
            clock=program.clock,
            nvml=nvml or False,  # False: do not look for a board
            deadline_ns=deadline_ns,
        )
        meter.prepare()
        meter.measure()
        return meter.measurement({"import": 1.0})

    return measure


@pytest.fixture
def cpu() -> Case:
    return Case(workload="fake")


@pytest.fixture
def cuda() -> Case:
    return Case(workload="fake", device="cuda:0")


@pytest.fixture
def protocol() -> Protocol:
    return Protocol()
