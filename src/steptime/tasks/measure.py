"""Times a case: warm-up, blocks, stamps."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import IO, Any

from steptime import workloads
from steptime.core.job import Job
from steptime.core.measurement import Measurement
from steptime.engine.meter import Meter
from steptime.tasks import Setting

TURN_STEPS = 3


def perform(setting: Setting) -> None:
    job, case = setting.job, setting.job.case
    begin = time.perf_counter()
    program = setting.framework.lower(workloads.load(case.workload).build(case), case)
    starts = {"import": setting.import_seconds, "build": time.perf_counter() - begin}
    meter = Meter(program, case, job.protocol)
    measurement = in_turns(meter, job, setting.answers, starts) if setting.answers else straight(meter, starts)
    setting.journal.measured(measurement)


def straight(meter: Any, starts: dict[str, float]) -> Measurement:
    meter.prepare()
    meter.measure()
    measurement: Measurement = meter.measurement(starts)
    return measurement


def in_turns(meter: Any, job: Job, answers: IO[str], starts: dict[str, float]) -> Measurement:
    """Warm-up alone, then one block for each `turn` on standard input: all that is kept is blocks of turns."""
    meter.prepare()
    meter.block(0.0)  # behind it the clock stands still until the first turn
    warm = meter.samples
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() != "turn":
            break
        meter.block(job.protocol.pair_block_seconds, least_steps=TURN_STEPS)
        print("done", file=answers, flush=True)
    measurement: Measurement = meter.measurement(starts)
    return replace(measurement, cut=warm)
