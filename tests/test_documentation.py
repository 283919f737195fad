"""The docs cannot rot: every command shown is run, every link leads somewhere, every plug-in is named."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steptime import plugins

ROOT = Path(__file__).parents[1]
DATA = (ROOT / ".." / "shared" / "data").resolve()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def shown(kind: str) -> list[str]:
    """The commands in console blocks that start with this word; a backslash continues on the next line."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            joined = block.replace("\\\n", " ")
            found += [
                line[2:].strip() for line in joined.splitlines() if line.startswith(f"$ {kind}")
            ]
    return sorted(set(found), key=lambda command: (_turn(command), command))


def _turn(command: str) -> int:
    """Weights first, then what others look at: charts and comparisons need something stored."""
    verb = [*command.split(), ""][1]
    return next(
        (turn for turn, verbs in enumerate((["train"], ["run", "import"])) if verb in verbs), 2
    )


@pytest.fixture(scope="module", autouse=True)
def one_cpu() -> Iterator[None]:
    """Other tests run beside these: threads that wait for each other on shared CPUs take minutes to become steady."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One working folder for all, so that commands can speak of what earlier ones stored."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "plans").symlink_to(ROOT / "plans")
    (folder / "docs").symlink_to(ROOT / "docs")
    return folder


@pytest.mark.live
@pytest.mark.parametrize("command", shown("steptime"))
def test_every_steptime_command_shown_works(command: str, folder: Path) -> None:
    if (" train " in command or "weights=" in command) and not DATA.is_dir():
        pytest.skip("needs the real data sets in ../shared/data")
    words = shlex.split(command.split(" > ")[0])
    expected = int(found[1]) if (found := re.search(r"# exits (\d+)", command)) else 0
    words = words[: words.index("#")] if "#" in words else words
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "STEPTIME_DATA": str(DATA), "PATH": path}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", shown("make"))
def test_every_make_command_shown_exists(command: str) -> None:
    """CI itself runs `make test`; here only that the target is there and would run."""
    subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    "command", sorted(path.stem for path in (ROOT / "docs/commands").glob("*.md"))
)
def test_a_page_of_a_command_names_its_flags(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steptime", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    flags = set(re.findall(r"--[a-z][a-z-]+", done.stdout)) - {"--help"}
    page = (ROOT / "docs/commands" / f"{command}.md").read_text()
    assert [flag for flag in sorted(flags) if flag not in page] == []


def test_the_own_network_that_is_shown_is_the_file_that_is_run() -> None:
    page = (ROOT / "docs/commands/show.md").read_text()
    assert (ROOT / "docs/examples/own.py").read_text() in page


def test_every_framework_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in plugins.names("frameworks") if name not in readme] == []


def test_the_readme_fits_its_budget() -> None:
    assert (ROOT / "README.md").read_text().count("\n") <= 150
    assert (ROOT / "ARCHITECTURE.md").read_text().count("\n") <= 200
