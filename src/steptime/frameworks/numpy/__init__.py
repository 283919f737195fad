"""NumPy in float64: the reference that says what a graph computes. Slow on purpose where speed would hide meaning."""

from __future__ import annotations

import platform

import numpy as np

from steptime.core.case import Case
from steptime.core.errors import Unsupported
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
    for setting, word in ONLY.items():
        found = getattr(case, setting)
        if found != word:
            return f"{setting} {found}: the reference computes with {setting}={word} only; use {setting}={word}"
    return None


def lower(work: Work, case: Case) -> NumpyProgram:
    if reason := unsupported(case):
        raise Unsupported(reason)
    return NumpyProgram(work, phase=case.phase, seed=case.seed)


def lower_rounded(work: Work, case: Case, *, precision: str, draw: int) -> NumpyProgram:
    """The same with the rounding errors of this precision, drawn but for the first time: shows how far they carry."""
    if reason := unsupported(case):
        raise Unsupported(reason)
    rounding = Rounding(precision, [case.seed, draw], nearest=draw == 0)
    return NumpyProgram(work, phase=case.phase, seed=case.seed, rounding=rounding)


def rounding_size(precision: str) -> float:
    return Rounding(precision, [0]).size


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError)
