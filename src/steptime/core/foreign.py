"""A result that another tool measured: what it reports, where, and what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha1
from typing import Any
from uuid import NAMESPACE_URL


@dataclass(frozen=True, kw_only=True)
class ForeignRun:
    """One row of another tool's results, in the catalogue's terms (index/catalogue.py).

    `dimensions` and `metrics` use the catalogue's names; everything else is kept in `more`.
    Times are in seconds, shares from 0 to 1."""

    # The name of the format in `formats/`.
    source: str
    # SHA-256 of the file it was read from; the file itself is kept as a blob.
    original: str
    # The file's name as the user gave it.
    file: str
    # A row, a key or a line in the file; unique within the file.
    location: str
    # ISO 8601, if the source has it.
    started: str = ""
    # Why there is no result. Failed runs are results, too.
    failure: str = ""
    dimensions: dict[str, Any] = field(default_factory=dict)
    # NAME, and with an interval also NAME_low and NAME_high.
    metrics: dict[str, float] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    # Known faults of the source that affect this row.
    defects: tuple[str, ...] = ()
    # Why it cannot be true. Such a row is shown but never ranked.
    quarantine: str = ""

    @cached_property
    def id(self) -> str:
        """The same row of the same file always has the same id, so a second import is harmless.

        It is a UUID of version 5, computed here because `uuid.uuid5` is slow for many rows."""
        name = f"steptime:{self.original}:{self.location}"
        digest = sha1(NAMESPACE_URL.bytes + name.encode(), usedforsecurity=False).hexdigest()
        variant = "89ab"[int(digest[16], 16) & 3]
        high = f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}"
        low = f"{variant}{digest[17:20]}-{digest[20:32]}"
        return f"{high}-{low}"

    @property
    def status(self) -> str:
        return "failed" if self.failure else "ok"

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ForeignRun:
        """Fields that a later version added are skipped."""
        fields = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        fields["defects"] = tuple(fields.get("defects", ()))
        return cls(**fields)
