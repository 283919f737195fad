"""Whatever a file holds that a command or the guide reads, both answer, or say why not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from mutated_files import TARGETS, Target, mutate_file
from mutated_requests import find_server_error
from odd_inputs import remove
from steptime import formats, plugins
from steptime.formats import Original
from steptime.index.workspace import Workspace
from steptime.run.slurm.overview import Overview
from steptime.web.server import make_app
from workbench import Workbench, find_defect, foreign_files, make_workbench

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with pytest.MonkeyPatch.context() as patch:
        yield make_workbench(tmp_path_factory.mktemp("workbench"), patch)


def test_foreign_files_have_every_format() -> None:
    found = {formats.recognise(Original(name, data)) for name, data in foreign_files().items()}
    assert found == set(plugins.names("formats"))


def test_targets_are_enough() -> None:
    assert sum(target.count for target in TARGETS) >= 450


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.pattern)
def test_mutated_file_is_read_or_refused(
    workbench: Workbench, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target.machine_file:
        monkeypatch.setenv("STEPTIME_MACHINE", target.machine_file)
    rng = random.Random(target.pattern)
    paths = [path for path in sorted(workbench.folder.glob(target.pattern)) if path.is_file()]
    defects = {}
    for number in range(target.count):
        path = rng.choice(paths)
        content = path.read_bytes()
        line = rng.choice((*target.commands, *target.pages))
        # A guide that serves already, as it does when a file is damaged.
        guide = _serve(workbench) if line in target.pages else None
        mutate_file(path, rng)
        if guide is not None:
            (page,) = workbench.arguments(line)
            defect = find_server_error(guide, guide.build_request("GET", page))
        else:
            line = line.replace("FILE", str(path.relative_to(workbench.folder)))
            defect = find_defect(workbench.arguments(line, number))
        if defect:
            defects[f"{number}: {line} with another {path.name}"] = defect
        remove(path)
        path.write_bytes(content)
        workbench.restore()
    assert not defects


def _serve(workbench: Workbench) -> Any:
    app = make_app(Workspace(workbench.store), campaigns=Overview(workbench.store))
    return testclient.TestClient(app, base_url="http://127.0.0.1:8765")
