from __future__ import annotations

import pytest

from steptime.core.case import Case
from steptime.core.errors import SteptimeError, UnknownWord


def test_equal_settings_have_equal_keys_and_any_other_setting_has_another() -> None:
    case = Case(workload="lenet5")
    assert case.key == Case.from_dict(case.to_dict()).key
    others = [Case(workload="lenet5", batch_size=33), Case(workload="lenet5", trial=1), Case(workload="deepmnist")]
    assert len({case.key, *(other.key for other in others)}) == 4


def test_a_setting_at_its_default_does_not_change_the_key() -> None:
    assert Case(workload="lenet5", mode="eager").key == Case(workload="lenet5").key


def test_a_misspelt_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownWord, match="Did you mean 'inference'"):
        Case(workload="lenet5", phase="inferense")
    with pytest.raises(UnknownWord, match="Did you mean 'batch_size'"):
        Case.from_dict({"workload": "lenet5", "batchsize": 1})


@pytest.mark.parametrize("device", ["cuda", "7", "cuda:²", "gpu:0", "cuda:-1", "cpu:0"])
def test_a_device_is_the_cpu_or_a_numbered_gpu(device: str) -> None:
    with pytest.raises(SteptimeError, match="device must be"):
        Case(workload="lenet5", device=device)


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("batch_size", 1.5), ("threads", -1), ("seed", True)])
def test_counts_are_whole_and_not_below_their_least(name: str, value: object) -> None:
    with pytest.raises(SteptimeError, match=f"{name} must be a whole number"):
        Case.from_dict({"workload": "lenet5", name: value})
