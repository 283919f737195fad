"""Charts, reports and exports in an environment without a web server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[report]'")
pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install '.[report]'")
pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install '.[report]'")

from steptime.store.folder import FolderStore

pytestmark = pytest.mark.slow

# Runs the command line as if these packages were not installed.
WITHOUT = """
import sys

sys.modules.update(dict.fromkeys({packages!r}))
from steptime.cli.main import main
sys.argv = ["steptime", *sys.argv[1:]]
main()
"""
WEB = ("fastapi", "starlette", "uvicorn")


def run_without(packages: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(packages=packages)
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )


@pytest.fixture
def store(tmp_path: Path, attempt_of: Any, times_of: Any, write: Any) -> str:
    folder = FolderStore(tmp_path / "store")
    write(folder, attempt_of(times_of(0, steps=40)))
    return str(folder.path)


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("chart", "x=model"), "chart.svg"),
        (("report",), "report.html"),
        (("export", "csv"), "results.csv"),
    ],
)
def test_command_needs_no_web_package(
    store: str, tmp_path: Path, words: tuple[str, ...], file: str
) -> None:
    output = tmp_path / file
    process = run_without(WEB, "--store", store, *words, "-o", str(output))
    assert (process.returncode, process.stderr) == (0, "")
    assert output.stat().st_size > 0


def test_guide_without_a_web_package_names_its_extra(store: str) -> None:
    process = run_without(WEB, "--store", store, "guide")
    message = "This command needs the guide extra: pip install 'steptime[guide]'"
    assert process.returncode == 1
    assert message in " ".join(process.stderr.split())


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("duckdb", ("chart", "x=model", "-o", "chart.svg")),
        ("vl_convert", ("chart", "x=model", "-o", "chart.svg")),
        ("jinja2", ("report", "-o", "report.html")),
    ],
)
def test_missing_package_names_the_report_extra(
    store: str, tmp_path: Path, package: str, words: tuple[str, ...]
) -> None:
    process = run_without((package,), "--store", store, *words[:-1], str(tmp_path / words[-1]))
    message = "This command needs the report extra: pip install 'steptime[report]'"
    assert process.returncode == 1
    assert message in " ".join(process.stderr.split())
