from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steptime.core.errors import NoSpace, SteptimeError
from steptime.data.sets import NoSet, cifar10, data_folder, mnist
from steptime.data.staging import _process_tag, remove_stale, stage


def test_stage_copies_dataset_and_removes_it(
    tiny_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL", str(tmp_path))
    with stage(mnist.SET, "$LOCAL", "me") as facts:
        inside = data_folder()
        assert inside.parent == tmp_path and len(list(inside.iterdir())) == facts["files"] == 4
        assert (
            facts["bytes"] == sum(path.stat().st_size for path in inside.iterdir())
            and facts["seconds"] > 0
        )
    assert data_folder() == tiny_mnist and not inside.exists()


def test_stage_copies_other_forms_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cifar-10").mkdir()
    (tmp_path / "tier").mkdir()
    for name in (*cifar10.MOSAICS, "readme.txt"):
        (tmp_path / "cifar-10" / name).write_bytes(b"1234")
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path))
    with stage(cifar10.SET, str(tmp_path / "tier"), "me") as facts:
        assert sorted(path.name for path in data_folder().iterdir()) == sorted(cifar10.MOSAICS)
        assert (
            facts["bytes"] == 28 and facts["bytes_per_second"] == facts["bytes"] / facts["seconds"]
        )
        assert facts["on"] == facts["from"] and facts["on"]["kind"]


def test_stage_explains_missing_tier(tiny_mnist: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(SteptimeError, match=r"The tier \$NOWHERE .* variable that is not set"),
        stage(mnist.SET, "$NOWHERE", "me"),
    ):
        pass
    with (
        pytest.raises(SteptimeError, match="none of the machine file is not a writable folder"),
        stage(mnist.SET, str(tmp_path / "none"), "me"),
    ):
        pass


@pytest.mark.usefixtures("tiny_mnist")
def test_stage_on_full_tier_raises_no_space_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(NoSpace, match=r"cannot be staged in .*: File too large"):
            stage(mnist.SET, str(tmp_path), "me").__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("steptime-data-*"))


def test_stage_explains_missing_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path / "none"))
    with pytest.raises(NoSet), stage(mnist.SET, str(tmp_path), "me"):
        pass
    assert os.environ["STEPTIME_DATA"] == str(tmp_path / "none")


STAGING = """
import os, sys
from steptime.data.sets import cifar10
from steptime.data.staging import _process_tag, remove_stale, stage
with stage(cifar10.SET, sys.argv[1], "them"):
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("cifar-10", "tier"):
        (tmp_path / name).mkdir()
    for name in cifar10.MOSAICS:
        (tmp_path / "cifar-10" / name).write_bytes(b"1234")
    monkeypatch.setenv("STEPTIME_DATA", str(tmp_path))
    return tmp_path / "tier"


@pytest.fixture
def other_process(tier: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Another process that has stage and waits."""
    with contextlib.ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            line = [sys.executable, "-c", STAGING, str(tier)]
            process = stack.enter_context(
                subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            return process

        yield start


def test_stage_removes_copies_of_killed_processes(tier: Path, other_process: Any) -> None:
    killed, living = other_process(), other_process()
    killed.kill()
    killed.wait()
    kept = {path for path in tier.iterdir() if f"-{living.pid}-" in path.name}
    assert len(list(tier.iterdir())) == 2 and len(kept) == 1
    with stage(cifar10.SET, str(tier), "me"):
        assert kept < set(tier.iterdir()) and len(list(tier.iterdir())) == 2
    assert set(tier.iterdir()) == kept


def test_remove_stale_checks_process_start_time(tier: Path) -> None:
    own_name = f"steptime-data-x-{_process_tag()}-abc"
    namespace, number, began, _ = own_name.removeprefix("steptime-data-x-").split("-")
    reused, alive = (
        tier / f"steptime-data-x-{namespace}-{number}-{int(began) - 1}-abc",
        tier / own_name,
    )
    for path in (reused, alive):
        path.mkdir()
    remove_stale(tier)
    assert [path.name for path in tier.iterdir()] == [own_name]


@pytest.mark.parametrize(
    "name", ["steptime-data-x-0123456789ab.1-1-1-abc", "steptime-data-x-abc", "steptime-data"]
)
def test_remove_stale_keeps_copies_of_other_hosts(tier: Path, name: str) -> None:
    """Made on another host, before the last boot, in a container, or with an unknown name."""
    (tier / name).mkdir()
    remove_stale(tier)
    assert (tier / name).is_dir()
