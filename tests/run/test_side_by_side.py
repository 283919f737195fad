"""Commands that run side by side: how many at a time, and that none is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steptime.run.side_by_side import run_side_by_side

HANGS = "import time\nfrom steptime.graph import network\ntime.sleep(600)\n"
PARENT = """
import sys
from steptime.run.side_by_side import run_side_by_side
show = ["show", sys.argv[1] + ":net"]
run_side_by_side({"a": show, "b": show}, 2, lambda ended, running: print(*running, flush=True))
"""


def test_run_side_by_side_starts_no_more_than_its_jobs() -> None:
    starts = []
    commands = {name: ["list", "networks"] for name in ("a", "b", "c")}
    run_side_by_side(commands, 2, lambda ended, running: starts.append((ended, len(running))))
    assert len(starts) == 3
    assert all(running <= 2 for _, running in starts) and starts[-1][0] >= 1


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_run_side_by_side_leaves_no_process_behind(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "own.py"
    file.write_text(HANGS)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline() for _ in range(2)] == ["a\n", "a b\n"]
        children = _children(parent.pid)
        assert len(children) == 2
        parent.send_signal(number)
        parent.wait(timeout=60)
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]
