from __future__ import annotations

import pytest

from steptime.core.errors import SteptimeError
from steptime.plan.machine_file import parse

KNOWN = ("pytorch", "tensorflow")


def test_parse_reads_interpreters_and_launchers() -> None:
    first, second = (
        'tensorflow]\npython = "tf/bin/python"',
        'pytorch]\nlaunch = ["podman", "run", "python"]',
    )
    text = f"[frameworks.{first}\n[frameworks.{second}"
    found = parse(text, "machine.toml", KNOWN)
    assert found.commands == {
        "tensorflow": ("tf/bin/python",),
        "pytorch": ("podman", "run", "python"),
    }
    assert found.to_dict()["frameworks"]["tensorflow"] == ["tf/bin/python"]


def test_parse_accepts_an_empty_file() -> None:
    assert parse("", "machine.toml", KNOWN).commands == {}


@pytest.mark.parametrize(
    "text, words",
    [
        ("[frameworks", "machine.toml: this is not TOML"),
        ("a = " + "9" * 5000, "machine.toml: this is not TOML"),
        ("a = " + "[" * 5000, "machine.toml: this is not TOML"),
        ('\n[framework.pytorch]\npython = "p"', "No part 'framework'. Did you mean 'frameworks'"),
        (
            '\n[frameworks.tensorfow]\npython = "p"',
            "line 2: No framework 'tensorfow'. Did you mean 'tensorflow'",
        ),
        (
            '[frameworks.pytorch]\npyton = "p"',
            r"line 2: No key of \[frameworks.pytorch\] 'pyton'. Did you mean",
        ),
        ("[frameworks.pytorch]\npython = 3", "line 2: python must be a text in quotes, found 3"),
        ('[frameworks.pytorch]\nlaunch = "podman run"', "line 2: launch must be a list of words"),
        ("[frameworks.pytorch]\nlaunch = []", "line 2: launch must be a list of words"),
        (
            '[frameworks.pytorch]\npython = "p"\nlaunch = ["q"]',
            "line 1: .* needs one of python, launch and container",
        ),
        ("[frameworks.pytorch]\n", "line 1: .* needs one of python, launch and container"),
        ('[frameworks]\npytorch = "p"', r"line 2: write \[frameworks.pytorch\]"),
        ("frameworks = 1", r"line 1: write \[frameworks.NAME\]"),
    ],
)
def test_parse_refuses_mistakes_with_their_line(text: str, words: str) -> None:
    with pytest.raises(SteptimeError, match=words):
        parse(text, "machine.toml", KNOWN)
