"""Weights trained in one framework give the same predictions in every other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime import plugins
from steptime.core.case import Case
from steptime.core.errors import NotInstalled
from steptime.data.sets import Samples
from steptime.frameworks import numpy as reference
from steptime.graph.weights import save
from steptime.tasks.train import Training
from steptime.workloads import supervised

IMAGES, BATCH = 2000, 500
CASE = Case(workload="mnist-mlp", batch_size=100, threads=1)


def first_samples(samples: Samples, count: int) -> Samples:
    return replace(samples, values=samples.values[:count], targets=samples.targets[:count])


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A perceptron that PyTorch trained on a fifth of MNIST."""
    framework = pytest.importorskip("steptime.frameworks.pytorch", reason="needs PyTorch to train")
    shared = Path(__file__).parents[2] / ".." / "shared" / "data"
    if not (shared / "mnist").is_dir():
        pytest.skip("needs the real datasets in ../shared/data")
    path = tmp_path_factory.mktemp("weights") / "mlp.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPTIME_DATA", str(shared.resolve()))
        train, test = (supervised.samples(CASE, split) for split in ("train", "test"))
    training = Training(framework.lower(supervised.build(CASE), CASE), CASE, 1, None)
    assert (
        training.run_epoch(
            0, first_samples(train, 12_000), first_samples(test, IMAGES), "accuracy"
        )["test"]["value"]
        > 0.85
    )
    save(path, training.program.weights())
    return path


def outputs(framework: Any, case: Case, images: Samples) -> np.ndarray:
    program = framework.lower(supervised.build(case), case)
    return np.concatenate([program.predict(batch) for batch in images.batches(BATCH)])


@pytest.fixture
def images(real_data: Path) -> Samples:
    return first_samples(supervised.samples(CASE, "test"), IMAGES)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Inductor's, about other parts of PyTorch
@pytest.mark.parametrize("name", plugins.names("frameworks"))
def test_frameworks_predict_equal_classes_with_trained_weights(
    name: str, weights: Path, images: Samples
) -> None:
    try:
        framework = plugins.load("frameworks", name)
    except (ImportError, NotInstalled) as problem:
        pytest.skip(f"{name} is not installed: {problem}")
    case_of_framework = replace(
        CASE, framework=name, phase="inference", batch_size=BATCH, weights=str(weights)
    )
    possible = [
        replace(case_of_framework, mode=mode) for mode in ("eager", "compiled", "graph", "session")
    ]
    cases = [case for case in possible if framework.unsupported(case) is None]
    exact_case = replace(case_of_framework, framework="numpy", precision="fp64")
    exact = outputs(reference, exact_case, images)
    low, high = np.sort(exact, axis=1)[:, -2:].T
    # Closer than fp32 can resolve, either class is right.
    clear = high - low > 1e-4 * np.abs(exact).max()
    assert clear.mean() > 0.999
    for case in cases or [exact_case]:
        assert (outputs(framework, case, images).argmax(1) == exact.argmax(1))[clear].all(), (
            case.label
        )
