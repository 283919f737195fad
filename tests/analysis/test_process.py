from __future__ import annotations

from dataclasses import replace

import numpy as np

from factories import kept_blocks, make_attempt
from steptime.analysis.process import MOST_POINTS, measured_processes
from steptime.core.cause import Cause
from steptime.core.record import Failure


def test_process_drops_the_block_that_the_cut_divides() -> None:
    part = measured_processes([make_attempt(range(1, 101), cut=15)])[0]
    assert [(span.first, span.last) for span in part.kept_spans][:2] == [(20, 30), (30, 40)]
    assert list(part.blocks) == kept_blocks(part.measurement)
    assert part.block_steps == 80


def test_process_keeps_the_last_block_if_the_cut_lies_in_it() -> None:
    part = measured_processes([make_attempt(range(1, 101), cut=95)])[0]
    assert [(span.first, span.last) for span in part.kept_spans] == [(90, 100)]
    assert part.points[0].seconds == np.median(range(96, 101)) / 1e9


def test_process_points_are_medians_of_kept_samples() -> None:
    part = measured_processes([make_attempt(range(1, 34), cut=3, blocks=2)])[0]
    assert [point.first for point in part.points] == list(range(3, 33, 3))
    assert part.points[3].seconds == 14e-9


def test_process_points_are_limited() -> None:
    part = measured_processes([make_attempt(range(1, 1001), blocks=200)])[0]
    assert len(part.points) == MOST_POINTS
    assert part.points[0].first == 0


def test_measured_processes_skip_failed_attempts() -> None:
    good = make_attempt(range(1, 101))
    failed = replace(good, measurement=None, failure=Failure(cause=Cause.CRASHED, reason=""))
    assert [part.attempt for part in measured_processes([failed, good])] == [good]
