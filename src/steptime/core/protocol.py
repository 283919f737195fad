"""How a case is measured: every number of the engine in one place.

Numbers that differ from the preset are stored with the result."""

from __future__ import annotations

import reprlib
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from typing import Any

from steptime.core.errors import SteptimeError, unknown
from steptime.core.schema import MOST_COUNT

# Makes the median absolute deviation of a normal distribution its standard deviation.
ROBUST = 1.4826


class OutOfRange(SteptimeError):
    """A number of the protocol that makes no sense."""

    def __init__(self, name: str, requirement: str, value: object) -> None:
        super().__init__(f"protocol.{name} must {requirement}, found {value}.")
        self.name = name


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Defaults are METHOD.md's. A preset changes a few of these numbers."""

    preset: str = "standard"

    # across processes
    processes_least: int = 8
    processes_most: int = 36
    target: float = 0.02  # half-width of the typical value's interval, relative
    budget_seconds: float = 120.0  # of one case, all its processes together
    limit_seconds: float = 900.0  # of one process: after this it hangs
    batch_halvings: int = 0  # how often half the batch is tried if memory runs out
    # Between two readings of a process that watches the worker from outside; 0: no such process.
    monitor_seconds: float = 0.0
    # Looks are at 6 · 1.35^k processes. Each has this alpha, for stopping and for printing.
    look_alpha: float = 0.035

    # inside a process
    block_seconds: float = 0.05
    # At least this many in a block of a device with its own queue, which every block end drains.
    block_steps: int = 10
    block_most_seconds: float = 1.0  # slow steps: block_steps make no block longer than this
    least_steps: int = 30
    least_seconds: float = 0.5
    steps: int = 0  # 0: least_steps and least_seconds decide; else the pilot's choice
    group_host_seconds: float = 20e-6
    group_clock_costs: int = 200
    group_device_seconds: float = 200e-6
    event_share: float = 0.001

    # warm-up
    warmup_steps: int = 40
    warmup_seconds: float = 1.0  # twice that on a GPU
    warmup_most_seconds: float = 30.0  # twice that on a GPU
    warmup_start: int = 0  # the largest cut so far in this session
    batch: int = 5
    clip: float = 6.0
    spike: float = 3.0
    boundary: float = 0.45

    # comparison
    pair_looks: tuple[int, ...] = (8, 12, 18, 27)
    pair_alpha: float = 0.02
    pair_blocks: int = 4  # at first; more if the spread is inside the pairs
    pair_blocks_most: int = 24
    pair_block_seconds: float = 0.15
    same_within: float = 0.02

    def __post_init__(self) -> None:
        if self.preset not in tuple(PRESETS):
            raise unknown("preset", self.preset, PRESETS)
        for field in fields(self):
            # Only these two are no numbers.
            if field.name not in ("preset", "pair_looks"):
                value = getattr(self, field.name)
                _check_type(field.name, value, type(field.default))
                _check_range(field.name, value)
        looks = self.pair_looks
        are_counts = bool(looks) and all(
            type(look) is int and 0 < look <= MOST_COUNT for look in looks
        )
        if not are_counts or sorted(set(looks)) != list(looks):
            raise OutOfRange("pair_looks", "be growing whole numbers", looks)
        if self.processes_least > self.processes_most:
            numbers = f"{self.processes_least} and {self.processes_most}"
            raise OutOfRange("processes_least", "not be above processes_most", numbers)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Protocol:
        """Fields that a later version added are skipped."""
        fields = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        if "pair_looks" in fields:
            fields["pair_looks"] = tuple(fields["pair_looks"])
        return cls(**fields)

    def changes(self) -> dict[str, Any]:
        """Numbers that differ from the preset's."""
        defaults = asdict(preset(self.preset))
        changes = {}
        for name, value in asdict(self).items():
            # The session itself sets these two as it learns.
            if value != defaults[name] and name not in ("steps", "warmup_start"):
                changes[name] = value
        return changes


SHARES = ("look_alpha", "event_share", "boundary", "pair_alpha", "same_within")
MAY_BE_ZERO = (
    "steps",
    "batch_halvings",
    "monitor_seconds",
    "least_steps",
    "least_seconds",
    "warmup_start",
    "warmup_seconds",
    "group_host_seconds",
    "group_clock_costs",
    "group_device_seconds",
)


def _check_type(name: str, value: object, expected: type) -> None:
    """A whole number will do for a number."""
    if expected is int and type(value) is not int:
        raise OutOfRange(name, "be a whole number", reprlib.repr(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutOfRange(name, "be a number", reprlib.repr(value))


def _check_range(name: str, value: float) -> None:
    most = 1.0 if name in SHARES else MOST_COUNT
    if 0 < value < most or (value == 0 and name in MAY_BE_ZERO):
        return
    if name in SHARES:
        requirement = "be between 0 and 1"
    elif value > 0:
        requirement = "be finite" if value == inf else f"be below {MOST_COUNT}"
    else:
        requirement = "be above 0"
    raise OutOfRange(name, requirement, value)


PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "processes_least": 3,
        "processes_most": 3,
        "budget_seconds": 60.0,
        "pair_looks": (8,),
    },
    "standard": {},
    "gold": {"target": 0.01, "budget_seconds": 600.0},
    "single": {"processes_least": 1, "processes_most": 1, "budget_seconds": 600.0},
}


def preset(name: str) -> Protocol:
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return replace(Protocol(preset=name), **PRESETS[name])
