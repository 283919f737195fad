"""What else used a device while its peaks were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_devices import FakeNvml
from steptime.machine import peaks, pressure
from steptime.machine.pressure import Pressure


def write_counters(root: Path, *, cpu: int, queue: int, waiting: int, steal: int) -> None:
    """Nanoseconds in each of two threads; microseconds; ticks of 1,000."""
    for thread in ("1", "2"):
        folder = root / "proc/self/task" / thread
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"{cpu} {queue} 7\n")
    (root / "proc/pressure").mkdir(parents=True, exist_ok=True)
    some = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={waiting}"
    (root / "proc/pressure/cpu").write_text(f"{some}\nfull avg10=0.00 total=0\n")
    (root / "proc/stat").write_text(f"cpu {1000 - steal} 0 0 0 0 0 0 {steal} 0 0\n")


def test_read_counters_add_up_all_threads(tmp_path: Path) -> None:
    write_counters(tmp_path, cpu=100, queue=30, waiting=5, steal=2)
    counters = pressure.read_counters(tmp_path)
    assert (counters.cpu_ns, counters.queue_ns, counters.waiting_ns) == (200, 60, 5000)
    assert counters.ticks == (2, 1000)


def test_cpu_pressure_is_unknown_if_the_system_reports_nothing(tmp_path: Path) -> None:
    counters = pressure.read_counters(tmp_path)
    assert pressure.cpu_pressure(counters, counters).to_dict() == {}


def test_cpu_pressure_compares_two_readings(tmp_path: Path) -> None:
    write_counters(tmp_path, cpu=0, queue=0, waiting=0, steal=0)
    first = pressure.read_counters(tmp_path)
    first = first._replace(wall_ns=0, ticks=(0, 0))
    write_counters(tmp_path, cpu=300, queue=100, waiting=600_000, steal=30)
    last = pressure.read_counters(tmp_path)._replace(wall_ns=10**9)
    seen = pressure.cpu_pressure(first, last)
    assert (seen.queue, seen.waiting, seen.stolen) == (0.25, 0.6, 0.03)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (Pressure(queue=0.4), "the bursts waited for a CPU for 40 % of the time"),
        (Pressure(waiting=0.99), "some task waited for a CPU for 99 % of the time"),
        (Pressure(stolen=0.06), "the hypervisor took 6 % of the CPU time"),
        (Pressure(other_processes=2), "2 other processes use the GPU"),
        (Pressure(busy=0.75), "the GPU was busy for 75 % of the time before"),
        (Pressure(hot=0.5), "the GPU slowed down for heat in 50 % of readings"),
    ],
)
def test_pressure_reasons_say_what_was_seen(seen: Pressure, sentence: str) -> None:
    assert seen.reasons == [sentence]


def test_pressure_has_no_reasons_on_a_quiet_machine() -> None:
    assert Pressure(queue=0.01, waiting=0.08, stolen=0.0, busy=0.0, hot=0.0).reasons == []
    assert Pressure().reasons == []


def test_idle_pressure_reads_the_board_and_its_processes() -> None:
    nvml = FakeNvml()
    nvml.pids = [1]
    seen = pressure.idle_pressure("cuda:0", nvml)
    assert seen.busy == 0.75 and seen.other_processes == 1


def test_watch_pressure_reads_a_hot_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pressure, "READING_SECONDS", 0.001)
    nvml = FakeNvml()
    nvml.reasons = 0x20
    with pressure.watch_pressure("cuda:0", nvml) as watch:
        while nvml.reads < 3:
            pass
    assert watch.pressure.hot == 1.0


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[Pressure]:
    """What is seen in each try; the last one stays."""
    script: list[Pressure] = []

    def cpu_pressure(*_: Any) -> Pressure:
        return script.pop(0) if len(script) > 1 else script[0]

    monkeypatch.setattr(pressure, "cpu_pressure", cpu_pressure)
    monkeypatch.setattr(peaks, "RETRY_SECONDS", 0.0)
    return script


def test_measure_unpressed_tries_again(tries: list[Pressure]) -> None:
    tries += [Pressure(waiting=0.99), Pressure(waiting=0.01)]
    rates = iter([3.4e9, 9.4e10])
    measured = peaks.measure_unpressed("cpu", lambda: {"fp32": next(rates)})
    assert measured["part"] == "peaks" and measured["peaks"] == {"fp32": 9.4e10}
    assert measured["pressure"] == {"waiting": 0.01} and measured["threads"] >= 1


def test_measure_unpressed_refuses_a_machine_that_stays_busy(tries: list[Pressure]) -> None:
    tries.append(Pressure(queue=0.4, waiting=0.99))
    calls = []
    measured = peaks.measure_unpressed("cpu", lambda: calls.append(1) or {})
    assert measured["part"] == "refused" and "peaks" not in measured
    assert len(calls) == measured["tries"] == 3
    assert "40 %" in measured["reason"] and "99 %" in measured["reason"]


def test_measure_unpressed_leaves_a_busy_board_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "RETRY_SECONDS", 0.0)
    calls = []
    measured = peaks.measure_unpressed("cuda:0", lambda: calls.append(1) or {}, FakeNvml())
    assert measured["part"] == "refused" and "busy for 75 %" in measured["reason"]
    assert not calls
