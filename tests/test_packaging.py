"""The packages that a release consists of, and the checks before one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDERS = (".ci", ".github", "benchmarks", "docs", "plans", "src", "tests")
CACHES = shutil.ignore_patterns("__pycache__", "*.egg-info")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since a build writes into its source tree and other tests run beside this one."""
    folder = tmp_path_factory.mktemp("tree")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=CACHES)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def sdist_names(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths in the sdist, without the folder that holds them all."""
    output = tmp_path_factory.mktemp("sdist")
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", output, tree],
        capture_output=True,
        check=True,
    )
    (archive,) = output.glob("steptime-*.tar.gz")
    with tarfile.open(archive) as members:
        return {member.name.partition("/")[2] for member in members if member.isfile()}


@pytest.mark.slow
def test_sdist_holds_sources_docs_and_tests(tree: Path, sdist_names: set[str]) -> None:
    paths = [path for name in FOLDERS for path in (tree / name).rglob("*") if path.is_file()]
    names = {str(path.relative_to(tree)) for path in paths if "steptime.egg-info" not in str(path)}
    assert {"docs/traps.md", "tests/test_packaging.py", "docs/images/run.png"} <= names
    assert names - sdist_names == set()


@pytest.mark.slow
def test_sdist_holds_what_make_needs(sdist_names: set[str]) -> None:
    needed = {"Makefile", "constraints.txt", "pyproject.toml", "CONTRIBUTING.md", ".ci/run"}
    assert needed - sdist_names == set()


def test_workflow_runs_ci_on_each_python_of_the_classifiers() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["test"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == versions
    assert job["steps"][-1]["run"].split()[-1] == ".ci/run"


def test_pre_commit_hooks_run_the_commands_of_make_lint() -> None:
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [hook["entry"].removesuffix(" --force-exclude") for hook in repos[0]["hooks"]]
    recipe = re.search(r"^lint:\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    commands = recipe[1].replace("$(BIN)", ".venv/bin").splitlines()
    assert hooks == [re.sub(r"( --check)?( \.)?$", "", command.strip()) for command in commands]
