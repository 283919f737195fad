"""Networks by name: from the catalogue, or from a user's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from steptime import networks
from steptime.core.errors import SteptimeError

OWN = """
from steptime.graph import network

@network("mine", title="My own", source="here")
def build(net):
    return net.dense(net.input(4), 2)
"""


def test_load_suggests_the_nearest_network() -> None:
    with pytest.raises(SteptimeError, match=r"No network 'resnet5'. Did you mean 'resnet50'"):
        networks.load("resnet5")


def test_load_reads_a_network_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    assert networks.load(f"{tmp_path}/own.py:mine").graph.trainable_parameters == 10


def test_load_rejects_a_name_that_the_file_lacks(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(SteptimeError, match=r"own.py: No network 'mien'. Did you mean 'mine'"):
        networks.load(f"{tmp_path}/own.py:mien")


def test_load_explains_a_file_that_fails(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import nothing_of_that_name")
    with pytest.raises(SteptimeError, match="cannot be read: ModuleNotFoundError"):
        networks.load(f"{tmp_path}/own.py:mine")


@pytest.mark.parametrize(
    "text", ["raise SystemExit(0)", OWN.replace("return", "raise SystemExit(0)\n    return")]
)
def test_load_rejects_a_file_that_exits(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(SteptimeError, match=r"own.py cannot be read: SystemExit: 0"):
        networks.load(f"{tmp_path}/own.py:mine")


def test_load_sends_prints_of_a_file_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        OWN.replace("    return", "    print('building')\n    return") + "print('read')\n"
    )
    networks.load(f"{tmp_path}/own.py:mine")
    assert capsys.readouterr() == ("", "read\nbuilding\n")


def test_load_rejects_a_missing_file() -> None:
    with pytest.raises(SteptimeError, match=r"No file 'absent.py'"):
        networks.load("absent.py:mine")
