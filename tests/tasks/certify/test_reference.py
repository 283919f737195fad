"""The reference files: read back complete, and another one for each dependency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steptime.core.errors import SteptimeError
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Tensor, sgd
from steptime.tasks.certify import write_reference
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.reference import ReferenceFiles
from steptime.tasks.certify.studies import Effort


def network(net: Net) -> Tensor:
    return net.dense(net.dropout(net.tanh(net.dense(net.input(6), 8)), 0.1), 4)


@pytest.fixture
def ready(bench: Callable[..., Any]) -> Any:
    return bench(network)


def test_read_exact_returns_what_was_written(ready: Any) -> None:
    exact = ready.files.read_exact()
    _, right = reference.lower(ready.work, reference_case()).gradients(ready.work.batch)
    for name, value in right.items():
        np.testing.assert_array_equal(exact["gradients"][name], value)
    assert len(exact["dropout"]["rate 0.1"]) == 64


def reference_case() -> Any:
    from steptime.core.case import Case

    return Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)


def test_read_deviations_have_the_precision_s_size(ready: Any) -> None:
    outputs = ready.files.read_deviations("fp32")["outputs"]["outputs"]
    assert 2**-24 < outputs[0] < 2**-16


def test_reference_name_depends_on_everything(ready: Any) -> None:
    study, folder = ready.study, Path("f")
    work = study.work
    other = {**work.batch, "input": work.batch["input"] + 1}
    studies = [
        study,
        replace(study, work=replace(work, optimizer=sgd())),
        replace(study, work=replace(work, batch=other)),
        replace(study, second=other),
        replace(study, effort=Effort(3, 1, 1)),
        replace(study, is_complete=False),
    ]
    names = [ReferenceFiles(folder, changed, "numpy", 0).name for changed in studies]
    names.append(ReferenceFiles(folder, study, "numpy", 1).name)
    assert len(set(names)) == 7 and names[0] == ready.files.name


@pytest.mark.parametrize("which", ["exact", "deviations"])
def test_write_reference_replaces_damaged_file(ready: Any, which: str) -> None:
    path = ready.files.exact if which == "exact" else ready.files.deviations("fp32")
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"#" * 50 + content[150:])
    write_reference(Lowering(reference, reference_case()), ready.files, "fp32")
    assert ready.files.read_exact()["gradients"] and ready.files.read_deviations("fp32")["outputs"]


def test_read_exact_explains_missing_reference(ready: Any, tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="steptime certify"):
        ReferenceFiles(tmp_path / "elsewhere", ready.study, "numpy", 0).read_exact()
