"""`steptime machine`: words from whatever the inventory holds, and peaks that are kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from steptime.cli.commands.machine import lines

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def test_nested_facts_become_lines_with_units() -> None:
    facts = {
        "caches_bytes": {"L2": 1 << 19},
        "gpus": [{"name": "H200", "power_limit_w": 700.0, "sm_clock_most_mhz": 1980}],
        "turbo": None,
        "smt_shared": False,
        "steal_share": 0.0125,
        "flags": ["avx", "fma"],
    }
    assert dict(lines(facts)) == {
        "caches L2": "512 KiB",
        "gpus 0 name": "H200",
        "gpus 0 power limit": "700 W",
        "gpus 0 sm clock most": "1,980 MHz",
        "smt shared": "no",
        "steal": "1.2 %",
        "flags": "avx, fma",
    }


@pytest.mark.live
def test_without_peaks_it_tells_and_stores_nothing(steptime: Command, tmp_path: Path) -> None:
    found = json.loads(steptime("machine", "--no-peaks", "--json").stdout)
    assert (
        found["machine"]["fingerprint"]
        and found["machine"]["health"]
        and found["software"]["numpy"]
    )
    assert found["peaks"] == {} and not list(tmp_path.iterdir())


@pytest.mark.live
def test_peaks_are_shown_and_kept_by_the_machines_fingerprint(
    steptime: Command, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="the peaks are measured with PyTorch")
    done = steptime("machine")
    assert done.returncode == 0 and "FLOP/s" in done.stdout and "B/s" in done.stdout
    (kept,) = tmp_path.glob("results/machines/*.json")
    found = json.loads(kept.read_text())
    assert found["machine"]["fingerprint"] == kept.stem
    assert found["peaks"]["cpu"]["peaks"]["fp32"]["flops_per_second"] > 0


@pytest.mark.live
def test_what_the_machine_file_says_is_shown(steptime: Command, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(
        '[frameworks.jax]\nlaunch = ["podman", "run", "python"]\n'
    )
    assert (
        "jax" in (shown := steptime("machine", "--no-peaks").stdout)
        and "podman run python" in shown
    )


@pytest.mark.live
def test_a_wrong_machine_file_is_told_before_anything_is_asked(
    steptime: Command, tmp_path: Path
) -> None:
    (tmp_path / "machine.toml").write_text('[frameworks.jacks]\npython = "python3"\n')
    done = steptime("machine", "--no-peaks")
    assert (
        done.returncode == 1
        and "machine.toml: line 1: No framework 'jacks'. Did you mean 'jax'?" in done.stderr
    )
