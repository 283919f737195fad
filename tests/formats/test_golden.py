"""The shared archives, all 824 files: values read by hand, and the count of each source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from steptime.core.foreign import ForeignRun
from steptime.formats import Original, Reading
from steptime.store.imports import Imports, foreign_runs

pytestmark = pytest.mark.slow

Readings = dict[str, Reading]


@pytest.fixture(scope="session")
def counts(readings: Readings) -> dict[str, Counter[str]]:
    """By source: runs, failures, skipped, quarantined, and rows (locations up to a comma)."""
    found: dict[str, Counter[str]] = {}
    for name, reading in readings.items():
        places = {run.location.split(",")[0] for run in reading.runs} | {
            s.location.split(",")[0] for s in reading.skipped
        }
        found.setdefault(name.split("/")[0], Counter()).update(
            runs=len(reading.runs),
            failed=sum(bool(run.failure) for run in reading.runs),
            rows=len(places),
            skipped=len(reading.skipped),
            quarantined=sum(bool(run.quarantine) for run in reading.runs),
        )
    return found


def only(runs: list[ForeignRun], file: str, place: str = "", **dimensions: Any) -> ForeignRun:
    fitting = [
        run
        for run in runs
        if run.file.endswith(file)
        and place in run.location
        and dimensions.items() <= run.dimensions.items()
    ]
    assert len(fitting) == 1, [(run.file, run.location) for run in fitting[:5]]
    return fitting[0]


def test_every_file_is_read_to_its_end(readings: Readings, real_files: list[Original]) -> None:
    assert len(real_files) == len(readings) == 824
    assert [found.broken for found in readings.values() if found.broken] == []


def test_importing_everything_twice_changes_nothing(
    readings: Readings, real_files: list[Original], tmp_path: Path
) -> None:
    def keep() -> int:
        with Imports(tmp_path) as imports:
            return sum(
                imports.keep(file.sha256, file.data, readings[file.name].runs)
                for file in real_files
            )

    assert keep() > 800
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ino) for file in tmp_path.rglob("*")}
    assert (
        keep() == 0
        and {f: (f.stat().st_mtime_ns, f.stat().st_ino) for f in tmp_path.rglob("*")} == before
    )
    assert len(list(foreign_runs(tmp_path))) == sum(len(found.runs) for found in readings.values())


def test_every_source_has_a_result(counts: dict[str, Counter[str]]) -> None:
    assert len(counts) == 22 and [name for name, found in counts.items() if not found["runs"]] == []
    assert sum(found["runs"] for found in counts.values()) > 46_000


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("timm", 35_629),
        ("mlperf-all-rounds", 8_076),
        ("mlperf-inference-v0.7", 335),
        ("mlperf-inference-v5.1", 1_448),
    ],
)
def test_tables_are_read_row_by_row(source: str, rows: int, readings: Readings) -> None:
    tables = [
        found
        for name, found in readings.items()
        if name.startswith(f"{source}/") and name.endswith((".csv", "s.json"))
    ]
    if source == "mlperf-all-rounds":
        tables = [found for name, found in readings.items() if name.startswith(source)]
    assert sum(len(found.runs) + len(found.skipped) for found in tables) == rows


@pytest.mark.parametrize(
    ("source", "runs", "failed"),
    [
        ("algoperf", 5, 3),
        ("dawnbench", 118, 0),
        ("hpe-dlbs", 16, 0),
        ("mlperf-training-v0.7", 15, 0),
        ("mlperf-training-v2.1", 5 + 27, 1),
        ("mlperf-training-v5.0", 25 + 8, 1),
        ("mlperf-inference-v4.1", 26 + 6 + 1, 0),
        ("psc-deep-mnist", 22 + 20, 3),
        ("torchbench", 2 + 306 + 25, 120),
    ],
)
def test_runs_and_failures_of_a_source(
    source: str, runs: int, failed: int, counts: dict[str, Counter[str]]
) -> None:
    assert (counts[source]["runs"], counts[source]["failed"]) == (runs, failed)


def test_tf_cnn_benchmarks_run_logs(real_runs: list[ForeignRun]) -> None:
    logs = [run for run in real_runs if run.source == "tf_cnn_benchmarks"]
    assert len(logs) == 72 and not [run for run in logs if run.failure]
    assert all(
        {"model", "device", "precision", "effective_batch"} <= run.dimensions.keys() for run in logs
    )
    assert sum("temperature" in run.metrics for run in logs) == 48


@pytest.mark.parametrize(
    ("file", "throughput", "milliseconds"),
    [
        ("01_introduction/logs/resnet50_8.log", 120.3, 66.500416),
        ("01_introduction/logs/alexnet_owt_32.log", 1165.425, 27.457794),
        ("logs/float16_resnet50_16.log", 206.45, 77.500605),
    ],
)
def test_dlbs_values_read_by_hand(
    file: str, throughput: float, milliseconds: float, real_runs: list[ForeignRun]
) -> None:
    run = only(real_runs, file)
    assert run.metrics["throughput"] == throughput and run.metrics["step_time"] == pytest.approx(
        milliseconds / 1e3
    )
    assert run.more["keys"] == 220


def test_psc_values_read_by_hand(real_runs: list[ForeignRun]) -> None:
    assert only(real_runs, "results/2018-06-05-k80:2:local").metrics == {
        "throughput": 5238.71626177,
        "step_time": 0.00954432297945,
        "speed_uncertainty": 0.86728809406,
        "jitter": 73.5046674466,
        "accuracy": 0.9917,
        "mean_time": 0.00954432297945,
        "mean_speed": 5238.71626177,
    }
    failures = Counter(run.failure for run in real_runs if run.source == "psc" and run.failure)
    assert failures == {"Slurm's time limit": 3}


def test_deepbench_values_read_by_hand(real_runs: list[ForeignRun]) -> None:
    gemm = only(
        real_runs,
        "DeepBench_NV_V100.xlsx",
        "Results FP32",
        operator="gemm",
        shape="m1760 n16 k1760 NN",
    )
    assert gemm.metrics == pytest.approx({"step_time": 0.038e-3, "flops": 2.6085e12}, rel=1e-4)
    reduce = only(
        real_runs,
        "train/DeepBench_NV_P100.xlsx",
        operator="all_reduce",
        shape="floats100000 ranks2",
    )
    assert reduce.metrics["step_time"] == pytest.approx(0.1019e-3, rel=1e-3)


def test_deepbench_has_its_kernels_in_every_training_sheet(real_runs: list[ForeignRun]) -> None:
    v100 = [
        run
        for run in real_runs
        if run.file.endswith("DeepBench_NV_V100.xlsx") and run.location.startswith("Results FP32")
    ]
    kinds = Counter(
        run.dimensions["operator"] for run in v100 if run.dimensions["mode"] == "forward"
    )
    assert kinds == {"gemm": 160, "convolution": 94, "rnn": 12, "lstm": 22, "gru": 19}


def test_fractional_output_sizes_are_quarantined(real_runs: list[ForeignRun]) -> None:
    wrong = [
        run
        for run in real_runs
        if "no whole number" in run.quarantine and run.dimensions["mode"] == "forward"
    ]
    books = Counter(f"{run.file.rpartition('_')[2]} {run.location.split(',')[0]}" for run in wrong)
    assert books["P100.xlsx Results FP32"] == books["MI25.xlsx Results FP32"] == 12 and set(
        books.values()
    ) == {12}


def test_convnet_benchmarks_values_read_by_hand(real_runs: list[ForeignRun]) -> None:
    run = only(real_runs, "imagenet_winners/output.log", model="AlexNet", phase="training")
    assert run.metrics["step_time"] == pytest.approx(0.08096)
    flagged = [run for run in real_runs if any("99 steps" in defect for defect in run.defects)]
    assert len(flagged) == 8 and all(
        run.metrics["step_time"] > run.more["printed_step_time"] for run in flagged
    )


@pytest.mark.parametrize(
    ("task", "seconds"), [("CIFAR10", 9.4), ("ImageNet", 157.6), ("SQuAD", 845.2)]
)
def test_dawnbench_values_read_by_hand(
    task: str, seconds: float, real_runs: list[ForeignRun]
) -> None:
    runs = [
        run for run in real_runs if run.source == "dawnbench" and run.dimensions["data"] == task
    ]
    best = min(
        (run for run in runs if "time_to_accuracy" in run.metrics),
        key=lambda run: run.metrics["time_to_accuracy"],
    )
    assert best.metrics["time_to_accuracy"] == pytest.approx(seconds, abs=0.06)
    assert task != "ImageNet" or best.metrics["cost"] == pytest.approx(14.425, abs=1e-3)


def test_lambda_values_on_eight_h200(real_runs: list[ForeignRun]) -> None:
    run = only(
        real_runs,
        "pytorch-train-throughput-v2-fp16.csv",
        model="bert_base_squad",
        server="LambdaBM_ENG04_8xH200_140GB_SXM_h200_v2",
    )
    assert run.metrics["throughput"] == 18_291 and run.quarantine.startswith(
        "19.6 times as fast on 8 devices as on 1"
    )


def test_repeated_uids_are_defects(real_runs: list[ForeignRun]) -> None:
    assert (
        sum("its uid occurs more than once in this file" in run.defects for run in real_runs)
        == 2 * 49
    )


def test_few_results_are_quarantined(real_runs: list[ForeignRun]) -> None:
    """Beside the halves: a check that catches many published results would be wrong itself."""
    caught = [
        run for run in real_runs if run.quarantine and "no whole number" not in run.quarantine
    ]
    assert 0 < len(caught) < 0.001 * len(real_runs)


def test_loadgen_latency_and_accuracy(real_runs: list[ForeignRun]) -> None:
    run = only(
        real_runs,
        "firefly-tflite-v1.15/resnet/singlestream/performance/run_1/mlperf_log_summary.txt",
    )
    assert run.metrics["latency_p90"] == pytest.approx(0.69511228) and run.metrics[
        "accuracy"
    ] == pytest.approx(0.76442)
    assert run.dimensions["submitter"] == "dividiti" and run.dimensions["framework"] == "tflite"


def test_every_name_is_in_the_catalogue(real_runs: list[ForeignRun]) -> None:
    from steptime.index.catalogue import DIMENSIONS, METRICS

    assert {name for run in real_runs for name in run.dimensions} <= DIMENSIONS.keys()
    assert {name for run in real_runs for name in run.metrics} <= METRICS.keys()


def test_every_throughput_has_a_unit(real_runs: list[ForeignRun]) -> None:
    assert {
        run.source
        for run in real_runs
        if "throughput" in run.metrics and not run.dimensions.get("unit")
    } <= {"superbench_logs"}
