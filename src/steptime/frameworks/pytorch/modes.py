"""What each mode does to a step: Inductor compiles it, a CUDA graph captures it, or both."""

from __future__ import annotations

from steptime.core.case import Case

# Inductor's own modes with CUDA graphs copy inputs and check guards in every step. Here the whole
# step is captured after it was compiled, so a replay does neither.
INDUCTOR_MODES = {
    "compiled": "default",
    "compiled-cudagraph": "default",
    "max-autotune": "max-autotune-no-cudagraphs",
}
CAPTURED = ("cudagraph", "compiled-cudagraph", "max-autotune")


def is_compiled(case: Case) -> bool:
    return case.mode in INDUCTOR_MODES


def is_captured(case: Case) -> bool:
    return case.mode in CAPTURED
