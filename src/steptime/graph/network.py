"""A named network: the function that builds it, and its source."""

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
    "sentences": "a sample is a source with its target, whose tokens are counted too",
    "samples": "a sample is anything else",
}
"""What a rate can count; no unit stands for two things."""


@dataclass(frozen=True)
class Network:
    name: str
    build: Callable[[Net], Tensor]
    title: str
    source: str  # paper or program that defines it
    optimizer: Optimizer  # that of the authors
    unit: str = "images"  # what is counted per second: one of UNITS
    data: str = ""  # the real dataset that it learns from: a plug-in of `data.sets`

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS, f"{self.name}: ")

    @cached_property
    def graph(self) -> Graph:
        net = Net(self.name)
        try:
            return net.graph(self.build(net))
        # These say already what is wrong.
        except SteptimeError:
            raise
        except Exception as problem:
            raise WrongGraph(self._explain(net, problem)) from problem

    def _explain(self, net: Net, problem: Exception) -> str:
        """One sentence that locates the mistake, since a network may be the user's own code."""
        if isinstance(problem, AttributeError) and problem.obj is net:
            return str(unknown("layer op", problem.name, OPS, f"{self.name}: "))
        # The first frame is `graph` above, the second one is in the network's function.
        frames = traceback.extract_tb(problem.__traceback__)[1:2]
        line = f" (line {frames[0].lineno} of {frames[0].filename})" if frames else ""
        return f"{self.name} cannot be built: {type(problem).__name__}: {problem}{line}."

    @property
    def units_per_sample(self) -> dict[str, int]:
        """By unit, the main one first.

        The input of a translation is the source followed by the target."""
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
    """Decorates the function that builds a network: `@network("lenet5", …)`."""

    def wrap(build: Callable[[Net], Tensor]) -> Network:
        return Network(name, build, title, source, optimizer or sgd(), unit, data)

    return wrap
