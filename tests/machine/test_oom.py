"""Kills for lack of memory are counted in the own control group only."""

from __future__ import annotations

from pathlib import Path

import pytest

from steptime.machine.oom import count_oom_kills, has_grown, is_sigkill

EVENTS = "low 0\nhigh 0\nmax 9\noom 2\noom_kill 5\noom_group_kill 0\n"


def make_root(root: Path, groups: str, path: str, text: str) -> Path:
    for name, content in {
        "proc/self/cgroup": groups,
        "proc/vmstat": "pswpin 3\noom_kill 77\n",  # of the whole machine
        path: text,
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


@pytest.mark.parametrize(
    ("groups", "path", "text"),
    [
        ("0::/user/job\n", "sys/fs/cgroup/user/job/memory.events.local", EVENTS),
        ("0::/user/job\n", "sys/fs/cgroup/user/job/memory.events", EVENTS),
        ("0::/user/job\n", "sys/fs/cgroup/memory.events", EVENTS),
        (
            "5:cpu,cpuacct:/\n4:memory:/slurm/job\n0::/\n",
            "sys/fs/cgroup/memory/slurm/job/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
        ),
    ],
)
def test_count_oom_kills_reads_the_own_control_group(
    tmp_path: Path, groups: str, path: str, text: str
) -> None:
    assert count_oom_kills(make_root(tmp_path, groups, path, text)) == 5


def test_count_oom_kills_ignores_other_groups_and_the_machine(tmp_path: Path) -> None:
    other = "sys/fs/cgroup/user/other/memory.events"
    assert count_oom_kills(make_root(tmp_path, "0::/user/job\n", other, EVENTS)) is None


def test_count_oom_kills_is_unknown_without_control_groups(tmp_path: Path) -> None:
    assert count_oom_kills(tmp_path) is None


@pytest.mark.parametrize(
    ("before", "after", "grown"), [(1, 2, True), (1, 1, False), (None, 2, False), (1, None, False)]
)
def test_has_grown_needs_both_counts(before: int | None, after: int | None, grown: bool) -> None:
    assert has_grown(before, after) is grown


@pytest.mark.parametrize(("code", "killed"), [(-9, True), (137, True), (9, False), (-15, False)])
def test_is_sigkill_knows_the_exit_code_of_a_shell(code: int, killed: bool) -> None:
    assert is_sigkill(code) is killed
