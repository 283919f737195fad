from __future__ import annotations

import os

import pytest

from steptime.engine import gpu


def test_gpu_reading_has_what_the_board_reports(fakes):
    nvml = fakes.Nvml()
    nvml.reasons = 0x40
    reading = gpu.find_gpu("cuda:0", nvml).read()
    assert reading == {
        "sm_clock_mhz": 1500.0,
        "power_w": 250.0,
        "temperature_c": 61.0,
        "reasons": 64.0,
    }


def test_gpu_read_is_limited_to_a_thousandth_of_the_time(fakes):
    clock = fakes.Clock()
    board = gpu.find_gpu("cuda:0", fakes.Nvml(clock, cost_ns=1_000_000), clock)
    assert board.cost_ns == pytest.approx(1_000_000, rel=0.01)
    assert board.read() is not None
    clock.now += 900_000_000
    assert board.read() is None
    clock.now += 110_000_000
    assert board.read() is not None


def test_find_gpu_is_none_without_nvml_or_on_cpu(fakes):
    assert gpu.find_gpu("cuda:0", None) is None
    assert gpu.find_gpu("cpu", fakes.Nvml()) is None


@pytest.mark.parametrize(
    ("visible", "handle"), [("", 1), ("1,0", 0), ("GPU-a,GPU-b", "GPU-b"), ("0", 1)]
)
def test_find_gpu_counts_visible_boards_only(fakes, monkeypatch, visible, handle):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu.find_gpu("cuda:1", fakes.Nvml())._handle == handle


def test_gpu_inventory_lists_every_board(fakes):
    first, second = gpu.inventory(fakes.Nvml())
    assert first == second
    assert (first["name"], first["memory_bytes"], first["power_limit_w"]) == (
        "Board",
        1 << 30,
        700.0,
    )
    assert (first["driver"], first["sm_clock_most_mhz"], first["memory_clock_most_mhz"]) == (
        "600.1",
        1980,
        3201,
    )


def test_other_processes_excludes_this_process(fakes):
    nvml = fakes.Nvml()
    nvml.pids = [os.getpid(), 77]
    assert gpu.other_processes(nvml) == 1


def test_gpu_inventory_is_empty_without_nvml(fakes):
    assert gpu.inventory(None) == [] and gpu.other_processes(None) is None


def test_open_nvml_imports_nothing_without_a_driver(monkeypatch):
    monkeypatch.setattr(gpu, "DRIVERS", ("/nowhere",))
    assert gpu.open_nvml() is None
