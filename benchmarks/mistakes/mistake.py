"""A mistake is a function that patches a lowering; a patcher counts its calls and restores all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

# What the mistakes of a class have in common.
CLASSES = {
    1: "The timed step is not the certified function",
    2: "State at rest hides the mistake",
    3: "Training: gradients, statistics, optimizer",
    4: "Wrong wiring or another op",
    5: "Dropout and low precision",
}


class Patcher:
    """Replaces functions of a lowering. A replacement gets the original as its first argument."""

    def __init__(self) -> None:
        self.calls = 0
        self._undo: list[Callable[[], None]] = []

    def function(self, owner: Any, name: str, wrong: Callable[..., Any]) -> None:
        """A function of a module, or a method of a class."""
        original = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, original))
        setattr(owner, name, self._count(original, wrong))

    def entry(self, table: dict[str, Any], key: str, wrong: Callable[..., Any]) -> None:
        original = table[key]
        self._undo.append(lambda: table.__setitem__(key, original))
        table[key] = self._count(original, wrong)

    def value(self, owner: Any, name: str, wrong: Any) -> None:
        """A constant. That it is used shows only in what the certificate measures."""
        original = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, original))
        setattr(owner, name, wrong)
        self.calls += 1

    def restore(self) -> None:
        # The last patch first: it may lie over an earlier one.
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _count(self, original: Callable[..., Any], wrong: Callable[..., Any]) -> Any:
        # Builtins have no names or signatures to copy.
        @wraps(wrong)
        def replacement(*arguments: Any, **settings: Any) -> Any:
            self.calls += 1
            return wrong(original, *arguments, **settings)

        return replacement


Patch = Callable[[Patcher], None]


@dataclass(frozen=True)
class Mistake:
    name: str
    description: str
    number: int  # of its class
    framework: str
    network: str
    patch: Patch
    mode: str = "eager"
    precision: str = "fp32"
    phase: str = "training"
    layout: str = "nchw"

    @contextmanager
    def made(self) -> Iterator[Patcher]:
        patcher = Patcher()
        try:
            self.patch(patcher)
            yield patcher
        finally:
            patcher.restore()


@dataclass
class Suite:
    """The mistakes of one framework. Called, it is a decorator of functions that patch."""

    framework: str
    mode: str
    phase: str = "training"
    mistakes: list[Mistake] = field(default_factory=list)

    def __call__(self, number: int, network: str, **settings: Any) -> Callable[[Patch], Patch]:
        def register(patch: Patch) -> Patch:
            self.add(number, network, patch, patch.__doc__ or "", **settings)
            return patch

        return register

    def add(
        self, number: int, network: str, patch: Patch, description: str, **settings: Any
    ) -> None:
        chosen = {"mode": self.mode, "phase": self.phase, "name": patch.__name__} | settings
        self.mistakes.append(
            Mistake(
                description=" ".join(description.split()).rstrip("."),
                number=number,
                framework=self.framework,
                network=network,
                patch=patch,
                **chosen,
            )
        )
