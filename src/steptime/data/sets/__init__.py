"""SHELF: one file per real data set: which files it has, where they come from, how they are read. Fetches nothing.

A set's file has `SET`, a `DataSet`, and `read(folder, part, graph) -> Samples`, `part` being "train" or "test"."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.graph import Graph

VARIABLE = "STEPTIME_DATA"
LARGEST_VALUE = 255


class NoSet(NotInstalled):
    """A set, or a file of it, is not here."""


class WrongFile(NotInstalled):
    """A file that is not what its authors published."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    name: str
    title: str
    address: str  # where its authors offer it
    files: dict[str, tuple[str, ...]]  # name -> SHA-256 of each edition that is known
    preparation: (
        str  # from what the files hold to what a network reads: part of the set's definition
    )
    metric: str = "accuracy"  # of a network's predictions
    other_forms: tuple[
        str, ...
    ] = ()  # files that may be here instead, with the same content packed another way

    def find(self, file: str, folder: Path) -> Path | None:
        """In the folder, or in one below it that is named after the set, however that is spelt."""
        return next(
            (place / file for place in self._places(folder) if (place / file).is_file()), None
        )

    def checked(self, file: str, folder: Path) -> Path:
        """The file, if it is there and is what its authors published."""
        path = self.find(file, folder)
        if path is None:
            raise self.missing(file, folder)
        self.check(file, digest(path), str(path))
        return path

    def check(self, file: str, found: str, where: str) -> None:
        if found not in self.files[file]:
            raise WrongFile(
                f"{where} is not {self.title}'s {file}: its SHA-256 is {found}, expected {self._sums(file)}. "
                f"Get it anew from {self.address}."
            )

    def missing(self, file: str, folder: Path) -> NoSet:
        return NoSet(
            f"{self.title} is missing: no {file} in {folder.absolute()} or a folder {self.name!r} below it. "
            f"Get it from {self.address} (SHA-256 {self._sums(file)}) "
            f"and name the folder with --data or ${VARIABLE}."
        )

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "preparation": self.preparation}

    def _sums(self, file: str) -> str:
        return " or ".join(self.files[file])

    def _places(self, folder: Path) -> Iterator[Path]:
        inner = (
            sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        )
        for place in inner:
            if _plain(place.name).startswith(_plain(self.name)):
                yield place
                yield from sorted(path for path in place.iterdir() if path.is_dir())
        yield folder


@dataclass(frozen=True)
class Samples:
    """One part of a set as its files hold it; a batch is prepared when it is asked for."""

    values: NDArray[Any]
    targets: NDArray[Any]
    prepare: Callable[[NDArray[Any]], NDArray[Any]] = field(default=lambda values: values)

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, places: Any) -> dict[str, Any]:
        return {
            "input": self.prepare(self.values[places]),
            "target": self.targets[places].astype(np.int64),
        }

    def batches(self, size: int, *, rest: bool = False) -> Iterator[dict[str, Any]]:
        """In order, all of one size: a rest that does not fill a batch is left out, unless it is asked for."""
        for first in range(0, len(self) if rest else len(self) - size + 1, size):
            yield self.batch(slice(first, first + size))


def folder() -> Path:
    """Where sets are looked for: `$STEPTIME_DATA`, else `data` in the working folder."""
    return Path(os.environ.get(VARIABLE) or "data").expanduser()


@cache  # a process reads each file once; what changes under its hands is not our concern
def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def images(values: NDArray[np.uint8], targets: NDArray[np.uint8], graph: Graph) -> Samples:
    """Bytes of (count, channels, height, width) as fractions of 1, in a black frame where the network wants more."""
    wanted, found = graph.input.shape, values.shape[1:]
    classes, output = int(targets.max()) + 1, graph[graph.output].shape
    if len(output) != 1 or output[0] < classes:
        raise SteptimeError(
            f"{graph.name} ends in the shape {output}; the set has {classes} classes."
        )
    frame = _frame(found, wanted)
    if frame is None:
        raise SteptimeError(
            f"{graph.name} reads samples of shape {wanted}; the set has images of {found}."
        )

    def prepare(chosen: NDArray[np.uint8]) -> NDArray[np.float32]:
        framed = np.pad(chosen, ((0, 0), *frame)) if any(map(any, frame)) else chosen
        return np.divide(framed, LARGEST_VALUE, dtype=np.float32).reshape(-1, *wanted)

    return Samples(values, targets, prepare)


def _frame(found: tuple[int, ...], wanted: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """How many zeros before and behind each axis; None: no frame makes one of the other."""
    if int(np.prod(found)) == int(np.prod(wanted)) and len(wanted) == 1:
        return [(0, 0)] * len(found)
    if len(found) != len(wanted) or found[0] != wanted[0] or any(np.subtract(wanted, found) < 0):
        return None
    missing = [large - small for large, small in zip(wanted, found, strict=True)]
    return [(rest // 2, rest - rest // 2) for rest in missing]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
