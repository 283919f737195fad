from __future__ import annotations

import os
from pathlib import Path

import pytest

from steptime.core.errors import SteptimeError
from steptime.data.sets import NoSet, cifar10, folder, mnist
from steptime.data.staging import staged


def test_inside_the_set_is_read_from_the_tier_and_gone_afterwards(
    tiny_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL", str(tmp_path))
    with staged(mnist.SET, "$LOCAL", "me") as told:
        inside = folder()
        assert inside.parent == tmp_path and len(list(inside.iterdir())) == told["files"] == 4
        assert told["bytes"] == sum(path.stat().st_size for path in inside.iterdir()) and told["seconds"] > 0
    assert folder() == tiny_mnist and not inside.exists()


def test_a_set_in_another_form_is_staged_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cifar-10").mkdir()
    (tmp_path / "tier").mkdir()
    for name in (*cifar10.MOSAICS, "readme.txt"):
        (tmp_path / "cifar-10" / name).write_bytes(b"1234")
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path))
    with staged(cifar10.SET, str(tmp_path / "tier"), "me") as told:
        assert sorted(path.name for path in folder().iterdir()) == sorted(cifar10.MOSAICS)
        assert told["bytes"] == 28 and told["bytes_per_second"] == told["bytes"] / told["seconds"]
        assert told["on"] == told["from"] and told["on"]["kind"]


def test_a_tier_that_is_not_here_is_told(tiny_mnist: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(SteptimeError, match=r"The tier \$NOWHERE .* variable that is not set here"),
        staged(mnist.SET, "$NOWHERE", "me"),
    ):
        pass
    with (
        pytest.raises(SteptimeError, match="which is not there or can not be written"),
        staged(mnist.SET, str(tmp_path / "none"), "me"),
    ):
        pass


def test_a_set_that_is_not_here_can_not_be_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path / "none"))
    with pytest.raises(NoSet), staged(mnist.SET, str(tmp_path), "me"):
        pass
    assert os.environ["STEPTIME_DATA"] == str(tmp_path / "none")
