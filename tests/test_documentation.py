"""The docs: every command shown is run, every link leads somewhere, every plugin is named."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from steptime import __version__
from tour_environment import make_environment

ROOT = Path(__file__).parents[1]
DATA = (ROOT / ".." / "shared" / "data").resolve()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def shown_commands(program: str, pages: Sequence[Path] = PAGES) -> list[str]:
    """Commands in console blocks that start with this program; a backslash continues a line."""
    commands = []
    for page in pages:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.S):
            joined = block.replace("\\\n", " ")
            commands += [
                line[2:].strip() for line in joined.splitlines() if line.startswith(f"$ {program}")
            ]
    return sorted(set(commands), key=lambda command: (_order(command), command))


def _order(command: str) -> int:
    """Train first, then measure: charts and comparisons need stored results."""
    verb = [*command.split(), ""][1]
    return next(
        (order for order, verbs in enumerate((["train"], ["run", "import"])) if verb in verbs), 2
    )


README = shown_commands("steptime", [ROOT / "README.md"])


@pytest.fixture(scope="module", autouse=True)
def one_cpu() -> Iterator[None]:
    """Other tests run beside these, and threads that share CPUs take minutes to become steady."""
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


@pytest.fixture(scope="module")
def tour_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("tour"))


@pytest.mark.live
@pytest.mark.parametrize("command", README)
def test_readme_shows_only_commands_that_work_after_the_tour(
    command: str, folder: Path, tour_python: Path
) -> None:
    run_command(command, folder, tour_python)


@pytest.mark.live
@pytest.mark.parametrize(
    "command", [command for command in shown_commands("steptime") if command not in README]
)
def test_docs_show_only_commands_that_work(command: str, folder: Path) -> None:
    if (" train " in command or "weights=" in command) and not DATA.is_dir():
        pytest.skip("needs the real data sets in ../shared/data")
    run_command(command, folder, Path(sys.executable))


def run_command(command: str, folder: Path, python: Path) -> None:
    words = shlex.split(command.split(" > ")[0])
    exit_code = re.search(r"# exits (\d+)", command)
    expected = int(exit_code[1]) if exit_code else 0
    words = words[: words.index("#")] if "#" in words else words
    assert words[0] == "steptime"
    done = subprocess.run(
        [str(python), "-m", *words],
        cwd=folder,
        env={**os.environ, "STEPTIME_DATA": str(DATA)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if words == ["steptime", "machine"] and done.returncode == 1:
        # It stores no peaks while other tests run beside this one.
        assert "No peaks of cpu: in 3 tries" in done.stdout, done.stdout + done.stderr
        return
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", shown_commands("make"))
def test_docs_show_only_make_targets_that_exist(command: str) -> None:
    """CI itself runs `make test`; here only that the target is there and would run."""
    subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_docs_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    "command", sorted(path.stem for path in (ROOT / "docs/commands").glob("*.md"))
)
def test_docs_page_of_a_command_names_its_flags(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steptime", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    flags = set(re.findall(r"--[a-z][a-z-]+", done.stdout)) - {"--help"}
    page = (ROOT / "docs/commands" / f"{command}.md").read_text()
    assert [flag for flag in sorted(flags) if flag not in page] == []


def test_docs_own_network_is_the_file_that_is_run() -> None:
    page = (ROOT / "docs/commands/show.md").read_text()
    assert (ROOT / "docs/examples/own.py").read_text() in page


def test_method_holds_rules_only() -> None:
    assert len((ROOT / "METHOD.md").read_bytes()) <= 15_000


def test_readme_and_architecture_fit_their_budgets() -> None:
    assert (ROOT / "README.md").read_text().count("\n") <= 150
    assert (ROOT / "ARCHITECTURE.md").read_text().count("\n") <= 200


def test_citation_has_the_version_of_the_package() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
