"""Plans by file, by name, and from flags alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from steptime.cli.request import (
    collect_settings,
    parse_settings,
    read_case,
    read_plan,
    shipped_plans,
    store_folder,
)
from steptime.core.errors import SteptimeError


def test_shipped_plans_all_expand() -> None:
    assert "tour" in shipped_plans()
    assert all(read_plan(name, {}).name == name for name in shipped_plans())


def test_read_plan_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[constants]\nworkload = "lenet5"\nbatch_size = 3\n')
    assert (
        read_plan(str(path), {"phase": "inference"}).cases[0].label
        == "lenet5 inference pytorch eager cpu fp32 batch 3"
    )


def test_read_plan_names_file_and_line_of_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[constants]\nworkload = "lenet6"\n')
    with pytest.raises(
        SteptimeError, match=r"mine.toml: line 2: No workload 'lenet6'. Did you mean 'lenet5'\?"
    ):
        read_plan(str(path), {})


def test_read_plan_gives_each_framework_a_mode_that_it_has() -> None:
    names = ["pytorch", "tensorflow", "numpy", "jax", "onnxruntime", "openvino"]
    cases = read_plan("", {"workload": "lenet5", "framework": names}).cases
    assert [case.mode for case in cases] == ["eager"] * 3 + ["compiled", "graph", "graph"]


def test_read_plan_without_a_name_uses_the_settings() -> None:
    plan = read_plan(
        "", {"workload": "lenet5", "batch_size": [1, 2], "protocol.target": 0.5}, "gold"
    )
    assert [case.batch_size for case in plan.cases] == [1, 2]
    assert plan.protocol.changes() == {"target": 0.5}


def test_parse_settings_makes_numbers_lists_and_texts() -> None:
    assignments = ["batch_size=1,32", "device=cuda:0", "seed=3", "protocol.target=1e-3"]
    assert parse_settings(assignments) == {
        "batch_size": [1, 32],
        "device": "cuda:0",
        "seed": 3,
        "protocol.target": 0.001,
    }


@pytest.mark.parametrize("text", ["batch_size", "=3", "mode="])
def test_parse_settings_refuses_a_missing_name_or_value(text: str) -> None:
    with pytest.raises(SteptimeError, match="Settings are written key=value"):
        parse_settings([text])


def test_collect_settings_lets_set_win_over_flags() -> None:
    flags = {"workload": "lenet5", "phase": "", "batch_size": "1,2"}
    settings = collect_settings(["batch_size=4", "mode=graph"], flags)
    assert settings == {"workload": "lenet5", "batch_size": 4, "mode": "graph"}


def test_read_case_refuses_several_cases() -> None:
    with pytest.raises(SteptimeError, match="Train one case at a time; these settings give 2"):
        read_case("Train", {"workload": "lenet5", "batch_size": [1, 2]})


def test_store_folder_is_the_variable_or_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPTIME_STORE", raising=False)
    assert store_folder() == Path("results")
    monkeypatch.setenv("STEPTIME_STORE", "/somewhere")
    assert store_folder() == Path("/somewhere")
