from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steptime import plugins
from steptime.core.errors import UnknownName

NETWORK = """from steptime.graph import network
@network("guest-net", title="A guest", source="here")
def guest(net):
    return net.dense(net.flatten(net.input(1, 4, 4)), 3)
"""
FRAMEWORK = '''"""A guest that computes as the reference does. More is not said."""
from steptime.frameworks.numpy import is_out_of_memory, lower, unsupported, versions
INSTALL = "pip install guest"
'''


@pytest.fixture
def guest(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds another package's network and framework."""
    (tmp_path / "guest_networks.py").write_text(NETWORK)
    (tmp_path / "guest_framework.py").write_text(FRAMEWORK)
    info = tmp_path / "guest-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1\n")
    groups = (
        "[steptime.networks]\n"
        "guest = guest_networks\n"
        "[steptime.frameworks]\n"
        "guest = guest_framework\n"
    )
    (info / "entry_points.txt").write_text(groups)
    return {**os.environ, "PYTHONPATH": str(tmp_path), "STEPTIME_STORE": str(tmp_path / "store")}


def test_load_finds_plugins_by_file_name() -> None:
    assert {"numpy", "pytorch"} <= set(plugins.names("frameworks"))
    assert plugins.load("tasks", "measure").perform


def test_load_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'pytorch'"):
        plugins.load("frameworks", "pytorhc")


def test_read_constant_does_not_import() -> None:
    assert "torch" in plugins.read_constant("frameworks", "pytorch", "INSTALL")
    assert plugins.read_constant("frameworks", "pytorch", "NO_SUCH_WORD") is None


def test_names_include_plugins_of_other_packages(guest: dict[str, str]) -> None:
    text = (
        "from steptime import plugins\n"
        "print(plugins.names('frameworks'))\n"
        "print(plugins.read_constant('frameworks', 'guest', 'INSTALL'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], env=guest, capture_output=True, text=True, check=True
    )
    assert "'guest'" in done.stdout and "pip install guest" in done.stdout


@pytest.mark.live
def test_run_measures_plugins_of_other_packages(guest: dict[str, str]) -> None:
    settings = ["--workload", "guest-net", "--set", "framework=guest", "--set", "precision=fp64"]
    command = [sys.executable, "-m", "steptime", "run", *settings, "--preset", "single", "--json"]
    done = subprocess.run(
        command, env=guest, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"status": "ok"' in done.stdout


def test_program_digest_changes_with_graph_and_framework(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """ONNX's lowering is part of `graph`, and was once in no digest."""
    copy = tmp_path / "steptime"
    shutil.copytree(Path(plugins.__file__).parent, copy, ignore=shutil.ignore_patterns("web"))
    command = [
        sys.executable,
        "-c",
        "from steptime import plugins; print(plugins.program_digest('onnxruntime'))",
    ]

    def digest() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        output = subprocess.run(
            command, env=environment, capture_output=True, check=True, cwd=tmp_path
        ).stdout
        return output.decode().strip()

    before = digest()
    assert digest() == before
    for file in ("graph/onnx/images.py", "frameworks/onnxruntime/program.py"):
        path = copy / file
        path.write_text(path.read_text() + "\n# changed\n")
        assert digest() != before
        before = digest()


def test_program_digest_differs_between_frameworks() -> None:
    assert plugins.program_digest("numpy") != plugins.program_digest("pytorch")
