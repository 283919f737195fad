"""What a store holds that somebody who follows it has not seen yet, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from steptime.core.record import Attempt


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A file of a folder, or what is new in a table of a database."""

    place: str = ""
    mark: str = (
        ""  # tells this state of the place from others; empty: look again, it may change unseen
    )
    attempts: tuple[Attempt, ...] = ()
    present: frozenset[str] = (
        frozenset()
    )  # ids of known attempts that lie here, perhaps only since a moment ago
    foreign: tuple[bytes, ...] = ()  # imported rows as they are kept, each a line of JSON
    whole: bool = False  # there are no other imported rows in this place
    gone: frozenset[str] = frozenset()  # places that hold nothing any more
    problems: tuple[str, ...] = ()


class Seen(Protocol):
    """What the follower knows."""

    @property
    def marks(self) -> Mapping[str, str]:
        """By place."""

    def known(self, ids: Iterable[str]) -> set[str]:
        """Which of these attempts need not be read again: those that ended never change."""
