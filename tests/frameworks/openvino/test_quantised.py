"""Tests of OpenVINO alone; `test_onnx_quantised.py` has the rest."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


@pytest.mark.skipif(find_spec("nncf") is None, reason="NNCF is not installed")
def test_quantiser_imports_no_other_framework() -> None:
    text = (
        "import sys; from steptime.frameworks import openvino as folder; folder._openvino()\n"
        "from steptime.frameworks.openvino.quantised import _hide_other_frameworks\n"
        "with _hide_other_frameworks():\n    import nncf\n"
        "sys.exit('torch' in sys.modules or 'tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", text]).returncode == 0
