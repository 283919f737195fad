"""What a store holds that a follower, such as the index, has not seen yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from steptime.core.record import Attempt


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A file of a folder, or the new rows of a database table."""

    # A file's path within the store, or the name of a table.
    location: str = ""
    # Tells this state of the location from others. Empty: look again, it may change unseen.
    mark: str = ""
    attempts: tuple[Attempt, ...] = ()
    # Ids of attempts that were read before and lie here, perhaps since a moment ago.
    present: frozenset[str] = frozenset()
    # Imported rows as they are stored, each a line of JSON.
    foreign: tuple[bytes, ...] = ()
    # True: `foreign` holds every imported row of this location.
    has_all_rows: bool = False
    # Locations that hold nothing any more.
    gone: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


class Seen(Protocol):
    """What the follower has read so far."""

    @property
    def marks(self) -> Mapping[str, str]:
        """The latest mark of each location."""

    def known_ids(self, ids: Iterable[str]) -> set[str]:
        """Those of these attempts that need no second reading: ended ones never change."""
