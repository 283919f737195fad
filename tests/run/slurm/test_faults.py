from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live
KILLS, CASES = 10, 14


def test_campaign_killed_ten_times_has_each_result_once(desk: Any) -> None:
    script = Path(__file__).with_name("faults.py")
    words = [
        sys.executable,
        str(script),
        str(desk.path / "campaign"),
        str(KILLS),
        str(CASES),
        "0.5",
        "3",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) >= KILLS and len(found["kills"]) >= 3
    assert (found["cases"], found["results_per_case"], found["campaigns"]) == (CASES, [1], 1)
