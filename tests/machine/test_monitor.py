from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steptime.machine import monitor
from steptime.machine.monitor import Watcher

BUSY = """
import time
held = b"x" * (64 << 20)
open({path!r}, "wb").write(held[:8 << 20])
while time.process_time() < 4:
    pass
"""


def watched(work: str, seconds: str = "0.05") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with subprocess.Popen([sys.executable, "-c", work], start_new_session=True) as worker:
        line = [
            sys.executable,
            "-P",
            "-m",
            "steptime.machine.monitor",
            str(worker.pid),
            seconds,
            "cpu",
        ]
        output = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout
    head, *rows = map(json.loads, output.splitlines())
    return head, rows


@pytest.mark.live
def test_monitor_records_busy_worker_and_ends_with_it(tmp_path: Path) -> None:
    head, rows = watched(BUSY.format(path=str(tmp_path / "out")))
    assert head["interval_seconds"] == 0.05 and "cpu_seconds" not in head["absent"]
    assert len(rows) >= 3 and rows[-1]["cpu_seconds"] >= 0.5
    assert (
        max(row["memory_bytes"] for row in rows) > 64 << 20 and rows[-1]["written_bytes"] >= 8 << 20
    )
    for name in (
        "seconds",
        "cpu_seconds",
        "written_bytes",
        "own_cpu_seconds",
        "machine_cpu_seconds",
    ):
        assert all(row[name] <= later[name] for row, later in pairwise(rows))


@pytest.mark.live
def test_monitor_reads_less_often_if_readings_are_expensive() -> None:
    """One in a millisecond would take more than its share of a CPU."""
    _, rows = watched("import time; time.sleep(1.5)", seconds="0.001")
    assert len(rows) >= 2
    used = rows[-1]["own_cpu_seconds"] - rows[1]["own_cpu_seconds"]
    assert used <= 4 * monitor.MOST_CPU_SHARE * (rows[-1]["seconds"] - rows[1]["seconds"]) + 0.005


def test_monitor_ignores_worker_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as worker:
        worker.wait()
    line = [sys.executable, "-P", "-m", "steptime.machine.monitor", str(worker.pid), "1", "cpu"]
    done = subprocess.run(line, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"" == done.stderr


def test_watcher_reads_every_board(fakes: SimpleNamespace) -> None:
    nvml = fakes.Nvml()
    row = Watcher(os.getpid(), monitor.find_boards("cuda", nvml)).read()
    assert (row["gpu0.utilisation"], row["gpu1.power_w"], row["gpu1.memory_bytes"]) == (
        0.75,
        250.0,
        4096.0,
    )
    assert "gpu0.energy_mj" not in row and "gpu0.energy_mj" not in monitor.missing_columns(
        row, "cuda"
    )


def test_find_boards_returns_one_board_per_device(
    fakes: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    (board,) = monitor.find_boards("cuda:0", fakes.Nvml()).items()
    assert board[0] == "gpu0" and board[1][1] == 1
    assert (
        len(monitor.find_boards("cuda", fakes.Nvml())) == 1
        and monitor.find_boards("cpu", fakes.Nvml()) == {}
    )


def test_missing_columns_names_gpu_without_nvml() -> None:
    row = Watcher(os.getpid(), monitor.find_boards("cuda:0", None)).read()
    assert (
        "gpu.power_w" in monitor.missing_columns(row, "cuda:0")
        and monitor.missing_columns(row, "cpu") == []
    )


def test_missing_columns_names_what_the_system_lacks(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    row = Watcher(7, {}, tmp_path).read()
    lacking = set(monitor.missing_columns(row, "cpu"))
    assert set(monitor.MACHINE_COLUMNS) <= lacking and {"read_bytes", "disk_read_bytes"} <= lacking


def test_network_and_disk_bytes_are_summed(tmp_path: Path) -> None:
    lines = [
        "Inter-| Receive",
        " face |bytes",
        "  lo: 5 0 0 0 0 0 0 0 5 0",
        " eth0: 10 0 0 0 0 0 0 0 3 0",
    ]
    (tmp_path / "dev").write_text("\n".join([*lines, "  ib0: 1 0 0 0 0 0 0 0 2 0"]))
    expected = {"network_received_bytes": 11, "network_sent_bytes": 5, "loopback_bytes": 5}
    assert monitor.network_bytes(tmp_path / "dev") == expected
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "diskstats").write_text(
        "8 0 sda 1 0 10 0 1 0 20 0\n8 1 sda1 1 0 10 0 1 0 20 0\n"
    )
    assert monitor.disk_bytes(tmp_path, {"sda"}) == {
        "machine_disk_read_bytes": 5120,
        "machine_disk_written_bytes": 10240,
    }
