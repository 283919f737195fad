"""Which kernels ran and by which provider, from a session of its own: the profiler would slow the one that is timed."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from steptime.core.case import Case
from steptime.frameworks.onnxruntime import settings


def executed(model: bytes, case: Case, feed: dict[str, Any]) -> dict[str, int]:
    """How often each kernel ran in one step, by '<operator> <provider>'."""
    with tempfile.TemporaryDirectory() as folder:
        options = settings.options(case)
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/kernels"
        session = settings.session(model, case, options)
        session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    ran = [event["args"] for event in events if event["name"].endswith("_kernel_time")]
    return dict(sorted(Counter(f"{args['op_name']} {args['provider']}" for args in ran).items()))
