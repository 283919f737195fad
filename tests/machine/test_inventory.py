from __future__ import annotations

import json
from pathlib import Path

import pytest

from steptime.machine import inventory

TREE = {
    "proc/cpuinfo": "\n\n".join(
        f"processor\t: {n}\nmodel name\t: Fast CPU\nphysical id\t: {n // 4}\n"
        f"core id: {n % 2}\nflags: avx2 hypervisor"
        for n in range(8)
    ),
    "proc/meminfo": (
        "MemTotal:       8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n"
    ),
    "proc/loadavg": "1.25 0.9 0.8 1/200 99\n",
    "proc/pressure/cpu": "some avg10=25.00 avg60=0 avg300=0 total=1\n",
    "proc/stat": "cpu  50 0 0 0 0 0 0 50 0 0\n",
    "etc/os-release": 'NAME="X"\nPRETTY_NAME="Some Linux 1"\n',
    "sys/devices/system/node/node0/x": "",
    "sys/devices/system/node/node1/x": "",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "32K",
    "sys/devices/system/cpu/cpu0/cache/index3/level": "3",
    "sys/devices/system/cpu/cpu0/cache/index3/type": "Unified",
    "sys/devices/system/cpu/cpu0/cache/index3/size": "16M",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,4",
    "sys/devices/system/cpu/cpu4/topology/thread_siblings_list": "0,4",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
}


@pytest.fixture
def root(tmp_path) -> Path:
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_hardware_counts_sockets_cores_and_threads(root):
    facts = inventory.hardware(root)
    assert (facts["cpu"], facts["sockets"], facts["cores"], facts["threads"]) == (
        "Fast CPU",
        2,
        4,
        8,
    )


def test_hardware_reads_caches_memory_and_numa_nodes(root):
    facts = inventory.hardware(root)
    assert facts["caches_bytes"] == {"L1d": 32 * 1024, "L3": 16 * 1024**2}
    assert (facts["memory_bytes"], facts["memory_gib"], facts["numa_nodes"]) == (8 * 1024**3, 8, 2)


def test_system_has_os_name(root):
    assert inventory.system(root)["os"] == "Some Linux 1"


def test_health_reports_what_disturbs(root):
    health = inventory.health(root)
    assert (health["governor"], health["turbo"], health["virtualised"]) == ("powersave", True, True)
    assert (health["steal_share"], health["load"], health["clock_source"]) == (0.5, 1.25, "hpet")
    assert health["pressure_share"] == {"cpu": 0.25, "io": None, "memory": None}
    assert health["swap_used_bytes"] == 60 * 1024


def test_smt_shared_is_true_for_two_threads_of_one_core(root):
    assert inventory.smt_shared(root, {0, 4}) is True
    assert inventory.smt_shared(root, {0, 1}) is False
    assert inventory.smt_shared(root, {7}) is None


def test_turbo_reads_boost_too(tmp_path):
    assert inventory.turbo(tmp_path) is None
    (tmp_path / "sys/devices/system/cpu/cpufreq").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/cpufreq/boost").write_text("0\n")
    assert inventory.turbo(tmp_path) is False


def test_inventory_of_empty_system_has_no_values(tmp_path):
    facts = inventory.inventory(tmp_path)
    assert facts["caches_bytes"] is None and facts["memory_bytes"] is None
    assert facts["health"]["governor"] is None and facts["health"]["virtualised"] is None


def test_fingerprint_depends_on_hardware_only(root, fakes):
    nvml = fakes.Nvml()
    before = inventory.inventory(root, nvml)["fingerprint"]
    nvml.pids = [7]
    (root / "etc/os-release").write_text('PRETTY_NAME="Another"')
    assert inventory.inventory(root, nvml)["fingerprint"] == before
    (root / "proc/cpuinfo").write_text(TREE["proc/cpuinfo"].replace("Fast", "Slow"))
    assert inventory.inventory(root, nvml)["fingerprint"] != before


def test_inventory_includes_gpus(root, fakes):
    assert [board["name"] for board in inventory.inventory(root, fakes.Nvml())["gpus"]] == [
        "Board",
        "Board",
    ]


def test_parse_cpu_list_reads_ranges():
    assert inventory._parse_cpu_list("0-2,5") == {0, 1, 2, 5}


def test_inventory_of_this_machine_is_json():
    assert json.loads(json.dumps(inventory.inventory()))["fingerprint"]


@pytest.mark.parametrize(("driver", "clock"), [("intel_pstate", 4900), ("acpi-cpufreq", None)])
def test_clock_most_is_unknown_if_the_driver_leaves_out_the_turbo(tmp_path, driver, clock):
    for cpu, kilohertz in (("cpu0", 3_100_000), ("cpu1", 4_900_000)):
        folder = tmp_path / f"sys/devices/system/cpu/{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_driver").write_text(f"{driver}\n")
        (folder / "cpuinfo_max_freq").write_text(f"{kilohertz}\n")
    assert inventory.clock_most_mhz(tmp_path) == clock
