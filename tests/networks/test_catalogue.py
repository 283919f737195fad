"""Finding networks: on the shelf, or in a file of one's own."""

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


def test_a_misspelt_network_gets_the_nearest_known() -> None:
    with pytest.raises(SteptimeError, match=r"No network 'resnet5'. Did you mean 'resnet50'"):
        networks.load("resnet5")


def test_a_network_of_ones_own_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    assert networks.load(f"{tmp_path}/own.py:mine").graph.trainable_parameters == 10


def test_a_name_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(SteptimeError, match=r"own.py: No network 'mien'. Did you mean 'mine'"):
        networks.load(f"{tmp_path}/own.py:mien")


def test_a_file_that_can_not_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import nothing_of_that_name")
    with pytest.raises(SteptimeError, match="cannot be read: ModuleNotFoundError"):
        networks.load(f"{tmp_path}/own.py:mine")


@pytest.mark.parametrize(
    "text", ["raise SystemExit(0)", OWN.replace("return", "raise SystemExit(0)\n    return")]
)
def test_a_file_that_wants_to_end_the_command_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(SteptimeError, match=r"own.py cannot be read: SystemExit: 0"):
        networks.load(f"{tmp_path}/own.py:mine")


def test_what_a_file_prints_is_no_part_of_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        OWN.replace("    return", "    print('building')\n    return") + "print('read')\n"
    )
    networks.load(f"{tmp_path}/own.py:mine")
    assert capsys.readouterr() == ("", "read\nbuilding\n")


def test_an_absent_file_is_refused() -> None:
    with pytest.raises(SteptimeError, match=r"No file 'absent.py'"):
        networks.load("absent.py:mine")
