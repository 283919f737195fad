"""A result that another tool measured: what it says, where it says so, and what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha1
from typing import Any
from uuid import NAMESPACE_URL


@dataclass(frozen=True, kw_only=True)
class ForeignRun:
    """One row of somebody else's results, in the guide's words. `dimensions` and `metrics` have the catalogue's names
    (guide/catalogue.py); what the catalogue does not know is kept under `more`. Times are seconds, shares 0 to 1."""

    source: str  # the format's name on the shelf `exchange`
    original: str  # SHA-256 of the file it was read from; the file itself is kept as a blob
    file: str  # the file's name as it was given, for people
    place: str  # where in it: a row, a key, a line; unique within the file
    started: str = ""  # ISO 8601, where the source tells it
    failure: str = ""  # why there is no result; failed runs are results too
    dimensions: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(
        default_factory=dict
    )  # NAME, and NAME_low, NAME_high where there is an interval
    more: dict[str, Any] = field(default_factory=dict)
    defects: tuple[str, ...] = ()  # known faults of the source that touch this row
    quarantine: str = ""  # why it cannot be true; shown, never ranked

    @cached_property
    def id(self) -> str:
        """The same row of the same file always has the same id, so importing twice changes nothing. A UUID of version
        5, spelled out here because there are many."""
        text = f"steptime:{self.original}:{self.place}"
        made = sha1(NAMESPACE_URL.bytes + text.encode(), usedforsecurity=False).hexdigest()
        variant = "89ab"[int(made[16], 16) & 3]
        return f"{made[:8]}-{made[8:12]}-5{made[13:16]}-{variant}{made[17:20]}-{made[20:32]}"

    @property
    def status(self) -> str:
        return "failed" if self.failure else "ok"

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ForeignRun:
        known = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        return cls(**{**known, "defects": tuple(known.get("defects", ()))})
