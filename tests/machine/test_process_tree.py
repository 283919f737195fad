from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steptime.machine.process_tree import ProcessTree, process_age_seconds

Start = Callable[[str], "subprocess.Popen[str]"]
BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"
WAIT = "print('ready', flush=True)\ninput()\n"


@pytest.fixture
def start() -> Iterator[Start]:
    """A session of its own, like a worker's, that has done its work and waits."""
    started = []

    def begin(work: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", work + WAIT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        assert started[-1].stdout is not None and started[-1].stdout.readline() == "ready\n"
        return started[-1]

    yield begin
    for process in started:
        if process.returncode is None:
            process.communicate("\n")


def test_process_tree_cpu_time_matches_rusage(start: Start) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start(BURN.format(seconds=0.3))
    cpu_seconds = ProcessTree(process.pid).read()["cpu_seconds"]
    process.communicate("\n")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The kernel counts in ticks of 10 ms, for user and system time each.
    assert cpu_seconds == pytest.approx(used, abs=0.1) and cpu_seconds >= 0.27


def test_process_tree_counts_child_that_has_ended(start: Start) -> None:
    child = f"subprocess.run([sys.executable, '-c', {BURN.format(seconds=0.3)!r}])"
    process = start(f"import subprocess, sys\n{child}\n")
    usage = ProcessTree(process.pid).read()
    assert usage["cpu_seconds"] >= 0.27 and usage["processes"] == 1


def test_process_tree_counters_never_fall(start: Start) -> None:
    child = f"[sys.executable, '-c', {(BURN.format(seconds=0.3) + WAIT)!r}]"
    process = start(
        f"import subprocess, sys\nc = subprocess.Popen({child}, stdin=-1, stdout=-1)\n"
        "c.stdout.readline()\n"
        "print('ready', flush=True)\ninput()\nc.communicate(b'x')\n"
    )
    tree = ProcessTree(process.pid)
    first = tree.read()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    last = tree.read()
    assert (first["processes"], last["processes"]) == (2, 1)
    assert (
        last["cpu_seconds"] >= first["cpu_seconds"] >= 0.27
        and last["read_bytes"] >= first["read_bytes"]
    )


def test_process_tree_remembers_usage_of_orphans(tmp_path: Path) -> None:
    def life(process: int, parent: int, ticks: int) -> None:
        (tmp_path / str(process)).mkdir(exist_ok=True)
        fields = ["S", parent, process, 7, 0, 0, 0, 0, 0, 0, 0, ticks, 0, 0, 0, 0, 0, 1, 0, 5, 0, 3]
        (tmp_path / str(process) / "stat").write_text(
            f"{process} (a) b) {' '.join(map(str, fields))}"
        )

    life(7, 1, 100)
    life(8, 1, 50)  # of the session, but init's child by now
    tree = ProcessTree(7, tmp_path)
    first = tree.read()
    (tmp_path / "8" / "stat").unlink()
    (tmp_path / "8").rmdir()
    assert (
        tree.read()["cpu_seconds"]
        == first["cpu_seconds"]
        == pytest.approx(150 / os.sysconf("SC_CLK_TCK"))
    )


def test_process_tree_includes_child_in_another_session(start: Start) -> None:
    child = "subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1, start_new_session=True)"
    assert ProcessTree(start(f"import subprocess, sys\nc = {child}\n").pid).read()["processes"] == 2


def test_process_tree_shows_memory_and_bytes(start: Start, tmp_path: Path) -> None:
    plain = ProcessTree(start("").pid).read()
    busy = (
        f"held = b'x' * (64 << 20)\nopen({str(tmp_path / 'out')!r}, 'wb').write(held[:8 << 20])\n"
    )
    usage = ProcessTree(start(busy).pid).read()
    assert usage["memory_bytes"] - plain["memory_bytes"] == pytest.approx(64 << 20, rel=0.2)
    assert usage["written_bytes"] - plain["written_bytes"] == pytest.approx(8 << 20, rel=0.1)


def test_process_tree_excludes_other_processes(start: Start) -> None:
    start(BURN.format(seconds=0.1))
    tree = ProcessTree(start("").pid)
    tree.read()
    start("")
    assert tree.read()["processes"] == 1


def test_process_tree_leaves_out_unreadable_counters(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a) S 1 7 7 0 0 0 0 0 0 0 1 1 0 0 0 0 1 0 5 0 3")
    assert set(ProcessTree(7, tmp_path).read()) == {
        "cpu_seconds",
        "memory_bytes",
        "processes",
        "threads",
    }


def test_process_tree_is_empty_after_its_end(start: Start) -> None:
    process = start("")
    tree = ProcessTree(process.pid)
    tree.read()
    process.communicate("\n")
    time.sleep(0.01)
    assert tree.read()["processes"] == 0


def named(journal: str, work: str = "") -> subprocess.Popen[str]:
    """Started by another launcher, with a worker's command line."""
    line = [sys.executable, "-c", work + WAIT, "-m", "steptime.worker", "case.json", journal]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(line, start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_process_tree_includes_foreign_workers_of_the_journal(start: Start) -> None:
    tree, plain = ProcessTree(root := start("").pid, journal="/a/b.jsonl"), ProcessTree(root)
    first = tree.read()
    child = (
        "import subprocess, sys\n"
        "c = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)\n"
    )
    rank, other = named("/a/b.jsonl", child), named("/a/c.jsonl")
    usage = tree.read()
    for process in (rank, other):
        process.communicate("\n")
    assert "apart" not in first and (usage["processes"], usage["apart"]) == (3, 1)
    assert plain.read()["processes"] == 1 and tree.read()["apart"] == 1


def write_process(proc: Path, process: int, line: bytes) -> None:
    (proc / str(process)).mkdir(exist_ok=True)
    (proc / str(process) / "stat").write_text(f"{process} (a) S 1 {process} {process}" + " 0" * 30)
    (proc / str(process) / "cmdline").write_bytes(line)


@pytest.mark.parametrize(("uptime_seconds", "workers"), [(1, 2), (60, 1)])
def test_process_tree_finds_young_workers_after_exec(
    uptime_seconds: int, workers: int, tmp_path: Path
) -> None:
    """A launcher forks first, and only then executes the workers, one after the other."""
    (tmp_path / "uptime").write_text(f"{uptime_seconds}.00 0.00\n")
    write_process(tmp_path, 7, b"srun")
    write_process(tmp_path, 8, b"slurmstepd")
    write_process(tmp_path, 9, b"slurmstepd")
    tree = ProcessTree(7, tmp_path, journal="j")
    assert "apart" not in tree.read()
    write_process(tmp_path, 8, b"python\0-m\0steptime.worker\0case\0j\0")
    assert tree.read()["apart"] == 1
    assert tree.read()["apart"] == 1
    write_process(tmp_path, 9, b"python\0-m\0steptime.worker\0case\0j\0")
    assert tree.read()["apart"] == workers


def test_process_age_grows_from_the_start_of_the_process(tmp_path: Path) -> None:
    code = (
        "import time; time.sleep(0.3)\n"
        "from steptime.machine.process_tree import process_age_seconds\n"
        "print(process_age_seconds())"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The kernel counts starts in ticks of 10 ms.
    assert 0.28 < float(done.stdout) < time.monotonic() - begin + 0.02
    assert process_age_seconds(tmp_path) == 0.0
