"""PLUGINS: one file for each real dataset: its files, their source, how to read them.

A dataset's module has `SET`, a `DataSet`, and `read(folder, split, graph) -> Samples` with the
split "train" or "test". If its files come in several forms, it also has `check(folder)`.

Nothing is downloaded unless `steptime data fetch` is called."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steptime.core.errors import NotInstalled, SteptimeError
from steptime.graph import Graph

VARIABLE = "STEPTIME_DATA"
LARGEST_VALUE = 255

Shape = tuple[int, ...]


class NoSet(NotInstalled):
    """A dataset, or a file of it, is not here."""


class WrongFile(NotInstalled):
    """A file differs from what its authors published."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    name: str
    title: str
    address: str  # where its authors offer it
    # SHA-256 of each known edition, by file name.
    files: dict[str, tuple[str, ...]]
    # How the network's input is made from the files: belongs to the dataset's definition.
    preparation: str
    metric: str = "accuracy"  # of a network's predictions
    # Files with the same content in another format, accepted instead.
    other_forms: tuple[str, ...] = ()
    # Public addresses of each file to download, the best one first.
    downloads: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, file: str, folder: Path) -> Path | None:
        """In the folder, or below it in a folder named like the dataset, in any spelling."""
        for candidate in self._folders(folder):
            if (candidate / file).is_file():
                return candidate / file
        return None

    def find_verified(self, file: str, folder: Path) -> Path:
        """The file, if it is here and is what its authors published."""
        path = self.find(file, folder)
        if path is None:
            raise self.missing_file_error(file, folder)
        self.verify(file, file_digest(path), str(path))
        return path

    def verify(self, file: str, digest: str, source: str) -> None:
        if digest not in self.files[file]:
            raise WrongFile(
                f"{source} is not {self.title}'s {file}: its SHA-256 is {digest}, "
                f"expected {self._digests(file)}. Remove it and {self._advice()}."
            )

    def missing_file_error(self, file: str, folder: Path) -> NoSet:
        return NoSet(
            f"{self.title} is missing: no {file} in {folder.absolute()} "
            f"or a folder {self.name!r} below it. "
            f"Name another folder with --data or ${VARIABLE}, or {self._advice()}. "
            f"SHA-256 of {file}: {self._digests(file)}."
        )

    def check(self, folder: Path) -> None:
        """Raise NoSet or WrongFile unless all files are here and as published."""
        for file in self.files:
            self.find_verified(file, folder)

    def _advice(self) -> str:
        if self.downloads:
            return f"run `steptime data fetch {self.name}`, or download it from {self.address}"
        return f"download it from {self.address}"

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "preparation": self.preparation}

    def _digests(self, file: str) -> str:
        return " or ".join(self.files[file])

    def _folders(self, folder: Path) -> Iterator[Path]:
        for inner in _subfolders(folder):
            if _normalise(inner.name).startswith(_normalise(self.name)):
                yield inner
                yield from _subfolders(inner)
        yield folder


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _normalise(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@dataclass(frozen=True)
class Samples:
    """One split of a dataset as its files hold it. A batch is prepared on request."""

    values: NDArray[Any]
    targets: NDArray[Any]
    prepare: Callable[[NDArray[Any]], NDArray[Any]] = field(default=lambda values: values)

    def __len__(self) -> int:
        return len(self.values)

    def batch(self, indices: Any) -> dict[str, Any]:
        return {
            "input": self.prepare(self.values[indices]),
            "target": self.targets[indices].astype(np.int64),
        }

    def batches(self, size: int, *, rest: bool = False) -> Iterator[dict[str, Any]]:
        """In order, all of one size. Samples that fill no batch are left out, unless `rest`."""
        end = len(self) if rest else len(self) - size + 1
        for first in range(0, end, size):
            yield self.batch(slice(first, first + size))


def check_files(plugin: ModuleType, folder: Path) -> None:
    """Raise NoSet, WrongFile or another SteptimeError unless the dataset is here and intact."""
    check = getattr(plugin, "check", plugin.SET.check)
    check(folder)


def data_folder() -> Path:
    """Where datasets are searched: `$STEPTIME_DATA`, or `data` in the working folder."""
    return Path(os.environ.get(VARIABLE) or "data").expanduser()


# A process reads each file once, so a file that changes meanwhile need not be noticed.
@cache
def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def image_samples(values: NDArray[np.uint8], targets: NDArray[np.uint8], graph: Graph) -> Samples:
    """Bytes (count, channels, height, width) scaled to 0 … 1, padded with black if needed."""
    input_shape = graph.input.shape
    image_shape = values.shape[1:]
    classes = int(targets.max()) + 1
    output_shape = graph[graph.output].shape
    if len(output_shape) != 1 or output_shape[0] < classes:
        raise SteptimeError(
            f"{graph.name} ends in the shape {output_shape}; the dataset has {classes} classes."
        )
    padding = _find_padding(image_shape, input_shape)
    if padding is None:
        raise SteptimeError(
            f"{graph.name} reads samples of shape {input_shape}; "
            f"the dataset has images of {image_shape}."
        )
    is_padded = any(map(any, padding))

    def prepare(chosen: NDArray[np.uint8]) -> NDArray[np.float32]:
        padded = np.pad(chosen, ((0, 0), *padding)) if is_padded else chosen
        return np.divide(padded, LARGEST_VALUE, dtype=np.float32).reshape(-1, *input_shape)

    return Samples(values, targets, prepare)


def _find_padding(image_shape: Shape, input_shape: Shape) -> list[tuple[int, int]] | None:
    """Zeros before and after each axis. None: padding cannot make one shape of the other."""
    if len(input_shape) == 1 and int(np.prod(image_shape)) == input_shape[0]:
        return [(0, 0)] * len(image_shape)
    if len(image_shape) != len(input_shape) or image_shape[0] != input_shape[0]:
        return None
    missing = [large - small for large, small in zip(input_shape, image_shape, strict=True)]
    if min(missing) < 0:
        return None
    return [(rest // 2, rest - rest // 2) for rest in missing]
