"""NumPy in float64: the reference that defines what a graph computes, clear before fast."""

from __future__ import annotations

import platform

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import Unsupported
from steptime.core.program import Program
from steptime.frameworks.numpy.program import NumpyProgram
from steptime.frameworks.numpy.rounding import Rounding
from steptime.graph import Work

INSTALL = "pip install numpy"
REQUIRES = ()
OPTIONAL = ()
MODES = ("eager",)
ONLY = {"device": "cpu", "precision": "fp64", "mode": "eager", "layout": "nchw"}


def versions() -> dict[str, str]:
    return {"numpy": np.__version__, "python": platform.python_version()}


def unsupported(case: Case) -> str | None:
    for setting, needed in ONLY.items():
        value = getattr(case, setting)
        if value != needed:
            return (
                f"{setting} {value}: the reference computes with {setting}={needed} only; "
                f"use {setting}={needed}"
            )
    return None


def lower(work: Work, case: Case) -> Program:
    if reason := unsupported(case):
        raise Unsupported(reason)
    return NumpyProgram(work, phase=case.phase, seed=case.seed)


def lower_rounded(work: Work, case: Case, *, precision: str, draw: int) -> Program:
    """The same with the rounding errors of this precision, to see how far they carry.

    Draw 0 rounds to the nearest number; all others have random errors."""
    if reason := unsupported(case):
        raise Unsupported(reason)
    rounding = Rounding(precision, [case.seed, draw], nearest=draw == 0)
    return NumpyProgram(work, phase=case.phase, seed=case.seed, rounding=rounding)


def rounding_size(precision: str) -> float:
    return Rounding(precision, [0]).size


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError)
