"""Containers in the machine file: for a framework, or by a name that a case asks for."""

from __future__ import annotations

import pytest

from steptime.core.case import Case
from steptime.core.container import Container
from steptime.core.errors import SteptimeError
from steptime.plan.machine_file import parse

BOX = '[launches.box]\ncontainer = "podman"\nimage = "ubuntu"'


def test_parse_accepts_containers_for_frameworks_and_launches() -> None:
    text = (
        f"[frameworks.pytorch]\n"
        f'container = "apptainer"\n'
        f'image = "torch.sif"\n'
        f'options = ["--nv"]\n'
        f"{BOX}"
    )
    found = parse(text, "machine.toml", ["pytorch"])
    sif, box = Container("apptainer", "torch.sif", options=("--nv",)), Container("podman", "ubuntu")
    assert found.commands == {"pytorch": sif} and found.launches == {"box": box}
    assert (
        found.way(Case(workload="lenet5")) == sif
        and found.way(Case(workload="lenet5", launch="box")) == box
    )
    assert found.to_dict()["launches"]["box"] == {
        "kind": "podman",
        "image": "ubuntu",
        "python": "python3",
        "options": [],
    }


def test_parse_accepts_interpreters_and_commands_as_launches() -> None:
    found = parse(
        '[launches.a]\npython = "p"\n[launches.b]\nlaunch = ["q", "r"]', "machine.toml", []
    )
    assert found.launches == {"a": ("p",), "b": ("q", "r")}


def test_lacks_names_a_missing_launch_or_tier() -> None:
    found = parse(BOX, "machine.toml", [])
    assert found.lacks(Case(workload="lenet5", launch="box")) == ""
    assert "[launches] of the machine file has no 'bx', found box" in found.lacks(
        Case(workload="lenet5", launch="bx")
    )
    assert "[tiers] of the machine file has no 'tape', found none" in found.lacks(
        Case(workload="x", staging="tape")
    )


def test_lacks_refuses_a_container_on_several_nodes() -> None:
    spread = Case(workload="lenet5", launch="box", exchange="allreduce", devices=2, nodes=2)
    assert "ranks of one node" in parse(BOX, "machine.toml", []).lacks(spread)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[launches.box]\ncontainer = "podmn"\nimage = "x"',
            "line 2: No container 'podmn'. Did you mean 'podman'",
        ),
        ('[launches.box]\ncontainer = "podman"', r"line 2: \[launches.box\] needs an image"),
        (
            '[launches.box]\ncontainer = "podman"\nimage = 3',
            "line 3: image must be a text in quotes, found 3",
        ),
        (
            '[launches.box]\ncontainer = "podman"\nimge = "x"',
            r"line 3: No key of \[launches.box\] 'imge'. Did you mean",
        ),
        (f'{BOX}\noptions = "--rm"', "line 4: options must be a list of words"),
        ('[launches.box]\nimage = "x"', r"line 2: No key of \[launches.box\] 'image'"),
        ('[launches]\nbox = "x"', r"line 2: write \[launches.box\]"),
        ("launches = 1", r"line 1: write \[launches.NAME\]"),
    ],
)
def test_parse_container_refuses_mistakes_with_their_line(text: str, words: str) -> None:
    with pytest.raises(SteptimeError, match=words):
        parse(text, "machine.toml", [])
