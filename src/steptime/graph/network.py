"""A named network: the function that builds it, and where it comes from."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from steptime.core.errors import SteptimeError, WrongGraph, unknown
from steptime.graph.graph import Graph
from steptime.graph.net import Net, Tensor
from steptime.graph.ops import OPS
from steptime.graph.optimizer import Optimizer, sgd

UNITS = {
    "images": "a sample is one picture",
    "tokens": "a sample is a sequence, and its positions are counted",
    "sentences": "a sample is a source with its target; source tokens and target tokens are counted beside it",
    "samples": "a sample is anything else",
}
"""What a rate can count; no word stands for two things."""


@dataclass(frozen=True)
class Network:
    name: str
    build: Callable[[Net], Tensor]
    title: str
    source: str  # paper or program that defines it
    optimizer: Optimizer  # the authors' own
    unit: str = "images"  # what is counted per second: one of UNITS
    data: str = ""  # the real set that it learns from: a name on the shelf `data.sets`

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS, f"{self.name}: ")

    @cached_property
    def graph(self) -> Graph:
        net = Net(self.name)
        try:
            return net.graph(self.build(net))
        except SteptimeError:
            raise
        except Exception as problem:
            raise WrongGraph(self._why(net, problem)) from problem

    def _why(self, net: Net, problem: Exception) -> str:
        """A network may be anybody's code: where it fails is said in one sentence."""
        if isinstance(problem, AttributeError) and problem.obj is net:
            return str(unknown("layer op", problem.name, OPS, f"{self.name}: "))
        place = traceback.extract_tb(problem.__traceback__)[1:2]
        line = f" (line {place[0].lineno} of {place[0].filename})" if place else ""
        return f"{self.name} cannot be built: {type(problem).__name__}: {problem}{line}."

    @property
    def units_per_sample(self) -> dict[str, int]:
        """By unit, the one that counts first. A translation's input is the source and, behind it, the target."""
        length = self.graph.input.shape[0]
        if self.unit == "tokens":
            return {"tokens": length}
        if self.unit == "sentences":
            target = self.graph[self.graph.output].shape[0]
            return {"sentences": 1, "source_tokens": length - target, "target_tokens": target}
        return {self.unit: 1}


def network(
    name: str,
    *,
    title: str,
    source: str,
    optimizer: Optimizer | None = None,
    unit: str = "images",
    data: str = "",
) -> Callable[[Callable[[Net], Tensor]], Network]:
    """`@network("lenet5", …)` above a function that builds it puts it on the shelf."""

    def wrap(build: Callable[[Net], Tensor]) -> Network:
        return Network(name, build, title, source, optimizer or sgd(), unit, data)

    return wrap
