"""Nothing that stands in the place of a file is waited for or read without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odd_inputs import time_limit
from steptime.core.errors import SteptimeError
from steptime.run.slurm.folder import CampaignFolder, DamagedCampaign
from steptime.store.files import read_bytes, read_text
from steptime.store.folder import FolderStore


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(path := tmp_path / "pipe")
    return path


def test_read_bytes_reads_an_ordinary_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xffa")
    assert read_bytes(tmp_path / "file") == b"\xffa"
    assert read_text(tmp_path / "file", errors="replace") == "\ufffda"


def test_read_bytes_refuses_a_pipe_at_once(pipe: Path) -> None:
    with time_limit(5), pytest.raises(OSError, match="Not an ordinary file"):
        read_bytes(pipe)


def test_read_bytes_refuses_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    with time_limit(5), pytest.raises(OSError, match="Not an ordinary file"):
        read_bytes(tmp_path / "link")


def test_read_bytes_refuses_a_folder_as_open_does(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_store_marked_by_a_pipe_is_refused(pipe: Path, tmp_path: Path) -> None:
    pipe.rename(tmp_path / "STORE.json")
    with time_limit(5), pytest.raises(SteptimeError, match=r"STORE\.json cannot be read"):
        FolderStore(tmp_path)


def test_campaign_described_by_a_pipe_is_damaged(pipe: Path, tmp_path: Path) -> None:
    folder = CampaignFolder(FolderStore(tmp_path / "store"), "a")
    folder.path.mkdir(parents=True)
    pipe.rename(folder.path / "campaign.json")
    with time_limit(5), pytest.raises(DamagedCampaign):
        folder.facts()
