"""Frameworks that fail in every way real ones do, and one that does not.

Tests register them as entry points."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steptime.core.ranks import read_ranks

INSTALL = "pip install misbehaving"
STEPS_BEFORE = 5
REPORTED_VARIABLES = (
    "PYTHONHASHSEED",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "TORCHINDUCTOR_CACHE_DIR",
)


class Program:
    timer = None

    def __init__(self, act: Callable[[], None]) -> None:
        self.act, self.steps = act, 0

    def step(self) -> None:
        self.steps += 1
        time.sleep(0.0005)
        if self.steps > STEPS_BEFORE:
            self.act()

    def wait(self) -> None: ...

    def feed(self, batch: dict[str, Any]) -> None: ...

    def compilations(self) -> int:
        return 0

    def memory(self) -> dict[str, int]:
        return {}

    def facts(self) -> dict[str, Any]:
        return {variable: os.environ.get(variable, "") for variable in REPORTED_VARIABLES}


class Framework:
    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def versions(self) -> dict[str, str]:
        return {"misbehaving": "1"}

    def unsupported(self, case: Any) -> str | None:
        return "precision fp64: not in this framework" if case.precision == "fp64" else None

    def lower(self, work: Any, case: Any) -> Program:
        return Program(self.act)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return "out of memory" in str(error)


def fail() -> None:
    raise RuntimeError("boom")


def run_out_of_device_memory() -> None:
    raise RuntimeError("device: out of memory, tried to allocate 7 GiB")


def grow() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (512 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    hoard = []
    while True:
        hoard.append(bytearray(64 << 20))


def hoard() -> None:
    """Uses more memory than the job was granted, until it is noticed."""
    held = bytearray(b"x") * (600 << 20)
    time.sleep(60)
    del held


def wait_for_the_gate() -> None:
    while not Path(os.environ["STEPTIME_TEST_GATE"]).exists():
        time.sleep(0.02)


def print_and_leave() -> None:
    for number in range(1000):
        print("line", number)
    os._exit(7)


def print_for_ever() -> None:
    while True:
        print("x" * 1_000_000, flush=True)


def touch_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # Slurm's nodes allow a dump of any size
    ctypes.string_at(0)


def leave_a_child() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    print("child", child.pid)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave_a_session() -> None:
    """The child that left our session starts another one, which loses its parent at once."""
    code = "import os\nif os.fork() == 0:\n    os.execvp('sleep', ['sleep', '1000'])\nos._exit(0)"
    starter = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    starter.wait()
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print("child", child.pid)
    os.kill(os.getpid(), signal.SIGSEGV)


class IdleProgram(Program):
    """Returns at once, as a step that forgot its work does."""

    def step(self) -> None:
        self.steps += 1


class Liar(Framework):
    def lower(self, work: Any, case: Any) -> Program:
        return IdleProgram(self.act)


class SelfishProgram(Program):
    """Needs a device that has room for one process."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(act)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            # The address is free again when the process ends.
            self.socket.bind(f"\0steptime selfish {os.environ['STEPTIME_PARENT']}")
        except OSError as problem:
            raise RuntimeError("device: out of memory") from problem


class Selfish(Framework):
    def lower(self, work: Any, case: Any) -> Program:
        return SelfishProgram(self.act)


def on_second_rank(act: Callable[[], None]) -> Callable[[], None]:
    return lambda: act() if read_ranks(os.environ).rank == 1 else None


lame_second = Framework(on_second_rank(lambda: time.sleep(0.005)))
full_second = Framework(on_second_rank(run_out_of_device_memory))
killed_second = Framework(on_second_rank(lambda: os.kill(os.getpid(), signal.SIGKILL)))
gone_second = Framework(on_second_rank(lambda: sys.exit(3)))
selfish = Selfish(lambda: None)
lies = Liar(lambda: None)
calm = Framework(lambda: None)
chatty = Framework(lambda: print("done"))
segfault = Framework(touch_nothing)
leaves = Framework(lambda: sys.exit(3))
hangs = Framework(lambda: time.sleep(1000))
grows = Framework(grow)
hoards = Framework(hoard)
waits = Framework(wait_for_the_gate)
full = Framework(run_out_of_device_memory)
fails = Framework(fail)
prints = Framework(print_and_leave)
babbles = Framework(print_for_ever)
killed = Framework(lambda: os.kill(os.getpid(), signal.SIGKILL))
emigrant = Framework(leave_a_session)
parent = Framework(leave_a_child)
