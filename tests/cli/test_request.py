"""Plans by file, by name, and from flags alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from steptime.cli.request import read_plan, shipped, store_folder
from steptime.core.errors import SteptimeError


def test_the_shipped_plans_are_found_and_read() -> None:
    assert "tour" in shipped()
    assert all(read_plan(name, {}).name == name for name in shipped())


def test_a_plan_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[constants]\nworkload = "lenet5"\nbatch_size = 3\n')
    assert (
        read_plan(str(path), {"phase": "inference"}).cases[0].label
        == "lenet5 inference pytorch eager cpu fp32 batch 3"
    )


def test_a_mistake_in_a_file_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[constants]\nworkload = "lenet6"\n')
    with pytest.raises(
        SteptimeError, match=r"mine.toml: line 2: No workload 'lenet6'. Did you mean 'lenet5'\?"
    ):
        read_plan(str(path), {})


def test_every_framework_gets_a_mode_that_it_has() -> None:
    names = ["pytorch", "tensorflow", "numpy", "jax", "onnxruntime", "openvino"]
    cases = read_plan("", {"workload": "lenet5", "framework": names}).cases
    assert [case.mode for case in cases] == ["eager"] * 3 + ["compiled", "graph", "graph"]


def test_settings_alone_are_a_plan() -> None:
    plan = read_plan(
        "", {"workload": "lenet5", "batch_size": [1, 2], "protocol.target": 0.5}, "gold"
    )
    assert [case.batch_size for case in plan.cases] == [1, 2]
    assert plan.protocol.changed() == {"target": 0.5}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("tuor", {}, "No plan file or shipped plan 'tuor'. Did you mean 'tour'?"),
        ("nowhere/x.toml", {}, "There is no plan file nowhere/x.toml"),
        (".", {}, ". is a folder, not a plan file."),
        ("", {"phase": "training"}, "A case needs a workload"),
        (
            "",
            {"workload": "lenet5", "bach_size": 1},
            "No setting 'bach_size'. Did you mean 'batch_size'?",
        ),
        (
            "",
            {"workload": "lenet5", "protocol.targt": 1},
            "No number of the protocol 'targt'. Did you mean 'target'?",
        ),
    ],
)
def test_wrong_words_are_refused_with_the_nearest(
    name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(SteptimeError) as refused:
        read_plan(name, settings)
    assert message in str(refused.value)


def test_the_store_is_the_environments_or_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPTIME_STORE", raising=False)
    assert store_folder() == Path("results")
    monkeypatch.setenv("STEPTIME_STORE", "/somewhere")
    assert store_folder() == Path("/somewhere")
