"""The reference on the disk: found again, whole, and another one for anything that it depends on."""

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
from steptime.tasks.certify import write
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.reference import Effort, Shelved, whole


def network(net: Net) -> Tensor:
    return net.dense(net.dropout(net.tanh(net.dense(net.input(6), 8)), 0.1), 4)


@pytest.fixture
def ready(bench: Callable[..., Any]) -> Any:
    return bench(network)


def test_exact_evidence_comes_back_as_it_was_written(ready: Any) -> None:
    exact = ready.shelved.read_exact()
    _, right = reference.lower(ready.work, reference_case()).gradients(ready.work.batch)
    for name, value in right.items():
        np.testing.assert_array_equal(exact["gradients"][name], value)
    assert len(exact["dropout"]["rate 0.1"]) == 64


def reference_case() -> Any:
    from steptime.core.case import Case

    return Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4)


def test_deviations_are_of_the_precisions_size(ready: Any) -> None:
    outputs = ready.shelved.read_deviations("fp32")["outputs"]["outputs"]
    assert 2**-24 < outputs[0] < 2**-16


def test_each_dependency_gives_another_name(ready: Any) -> None:
    work, folder = ready.work, Path("f")
    other = {**work.batch, "input": work.batch["input"] + 1}
    changed = (replace(work, optimizer=sgd()), replace(work, batch=other))
    names = {Shelved(folder, one, "numpy", Effort()).name for one in (work, *changed)}
    names.add(Shelved(folder, work, "numpy", Effort(steps=3)).name)
    assert len(names) == 4 and Shelved(folder, work, "numpy", Effort()).name == ready.shelved.name


@pytest.mark.parametrize("which", ["exact", "deviations"])
def test_a_damaged_reference_is_computed_anew(ready: Any, which: str) -> None:
    path = ready.shelved.exact if which == "exact" else ready.shelved.deviations("fp32")
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"#" * 50 + whole[150:])
    write(Lowering(reference, reference_case()), ready.work, ready.shelved, "fp32")
    assert (
        ready.shelved.read_exact()["gradients"] and ready.shelved.read_deviations("fp32")["outputs"]
    )


def test_a_reference_that_is_not_there_is_a_sentence(ready: Any, tmp_path: Path) -> None:
    with pytest.raises(SteptimeError, match="steptime certify"):
        Shelved(tmp_path / "elsewhere", ready.work, "numpy", Effort()).read_exact()


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole(tmp_path / "a" / "file") as draft:
        draft.write_text("half")
        raise ZeroDivisionError
    assert list((tmp_path / "a").iterdir()) == []
