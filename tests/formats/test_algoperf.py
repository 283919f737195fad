"""AlgoPerf's logs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steptime.formats import Reading

Read = Callable[..., Reading]

LOG = """python3 submission_runner.py --framework=jax --workload=ogbg --submission_path=a/nadamw.py
I0204 submission_runner.py:551] --- Tuning run 1/2 ---
I0204 submission_runner.py:408] Time since start: 322.88s, \tStep: 1, \
\t{'validation/mean_average_precision': 0.1, 'validation/loss': 0.7, 'score': 18.0}
I0204 submission_runner.py:408] Time since start: 700.00s, \tStep: 100, \
\t{'validation/mean_average_precision': 0.3, 'validation/loss': 0.2, 'score': 50.0}
I0204 submission_runner.py:586] Timing: 200.0
I0204 submission_runner.py:551] --- Tuning run 2/2 ---
I0204 submission_runner.py:408] Time since start: 900.00s, \tStep: 10, \
\t{'validation/mean_average_precision': 0.2, 'validation/loss': 0.5, 'score': 20.0}
"""
ABOUT = (
    '{"workload.target_metric_name": "mean_average_precision", '
    '"workload.validation_target_value": 0.28, "gpu_model_name": "V100", '
    '"gpu_count": 8}'
)


def test_trial_is_a_run_to_its_target(read: Read) -> None:
    reached, missed = read("ogbg.log", LOG, {"trial_1/meta_data_0.json": ABOUT}).runs
    assert reached.metrics == pytest.approx(
        {"time_to_accuracy": 50.0, "task_metric": 0.3, "loss": 0.2, "step_time": 2.0}
    )
    assert reached.dimensions["devices"] == 8 and reached.location == "trial 1"
    assert (
        missed.failure == "validation/mean_average_precision reached 0.2000, below its target 0.28"
    )


def test_settings_have_no_rows(read: Read) -> None:
    assert not read("trial_1/meta_data_0.json", ABOUT).runs
