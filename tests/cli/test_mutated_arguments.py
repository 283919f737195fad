"""Whatever the arguments of a command are, it answers, or it says why not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn", reason="the guide is not installed: pip install '.[guide]'")

from mutated_arguments import command_lines, command_names, mutate_arguments
from workbench import Workbench, find_defect, make_workbench

pytestmark = pytest.mark.slow

SEED = 20
MUTATIONS = 10  # of each command line
SLOW = ("report", "export", "--by-node")  # take half a second each


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with pytest.MonkeyPatch.context() as patch:
        yield make_workbench(tmp_path_factory.mktemp("workbench"), patch)


def test_command_lines_name_every_command() -> None:
    lines = [" ".join(line) for line in command_lines()]
    missing = {name for name in command_names() if not any(name in line for line in lines)}
    assert not missing


def test_commands_survive_mutated_arguments(workbench: Workbench) -> None:
    rng = random.Random(SEED)
    defects = {}
    inputs = 0
    for line in command_lines():
        is_slow = any(word in line for word in SLOW)
        for _ in range(2 if is_slow else MUTATIONS):
            mutated = mutate_arguments(line, rng)
            arguments = workbench.fill_in(mutated, inputs)
            inputs += 1
            if defect := find_defect(arguments):
                defects[repr(arguments)[:300]] = defect
            workbench.restore()
    assert inputs >= 450 and not defects
