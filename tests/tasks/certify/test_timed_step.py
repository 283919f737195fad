"""A program may compute the right thing everywhere but in the function that is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from steptime.core.case import Case
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Tensor, Work, momentum


def network(net: Net) -> Tensor:
    x = net.relu(net.batch_norm(net.conv(net.input(2, 6, 6), 4, 3, bias=False)))
    return net.dense(net.flatten(x), 5)


class Cheating:
    """The right program with another step or feed."""

    def __init__(self, program: Any, cheat: Callable[[Any], Any]) -> None:
        self.program, self.cheat = program, cheat
        self.calls = 0
        self.first: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.program, name)

    def step(self) -> Any:
        self.calls += 1
        return self.cheat(self)


class Framework:
    """Lowers to the rounded reference; programs of some cases cheat."""

    def __init__(self, cheat: Callable[[Any], Any], **settings: Any) -> None:
        self.cheat, self.settings = cheat, settings

    def lower(self, work: Work, case: Case) -> Any:
        from dataclasses import replace

        exact = replace(case, precision="fp64")
        program = reference.lower_rounded(work, exact, precision="fp32", draw=99)
        is_cheating = all(getattr(case, name) == value for name, value in self.settings.items())
        return Cheating(program, self.cheat) if is_cheating else program


def quarter_of_the_batch(cheating: Any) -> Any:
    outputs = cheating.program.step().copy()
    outputs[1:] = outputs[:1]
    return outputs


def first_output_for_ever(cheating: Any) -> Any:
    if cheating.first is None:
        cheating.first = cheating.program.step()
    return cheating.first


def once_for_each_batch(cheating: Any) -> Any:
    """Returns what it has until another batch is fed."""
    if cheating.first is None or cheating.first[0] is not cheating.program.batch:
        cheating.first = (cheating.program.batch, cheating.program.step())
    return cheating.first[1]


def never_runs(cheating: Any) -> Any:
    return np.zeros((4, 5))


def in_bf16(cheating: Any) -> Any:
    return (cheating.program.step() * (1 + 2.0**-9)).copy()


def without_update(cheating: Any) -> Any:
    weights = cheating.program.weights()
    loss = cheating.program.step()
    cheating.program.load(weights)
    return loss


def every_second_update(cheating: Any) -> Any:
    return without_update(cheating) if cheating.calls % 2 == 0 else cheating.program.step()


def without_statistics(cheating: Any) -> Any:
    before = cheating.program.weights()
    loss = cheating.program.step()
    after = cheating.program.weights()
    kept = {name: value for name, value in before.items() if "running" in name}
    cheating.program.load({**after, **kept})
    return loss


def to_bf16(array: Any) -> Any:
    bits = np.asarray(array, np.float32).copy().reshape(-1).view(np.uint32)
    return (bits & 0xFFFF0000).view(np.float32).reshape(np.shape(array))


def masters_in_bf16(cheating: Any) -> Any:
    loss = cheating.program.step()
    weights = cheating.program.weights()
    cheating.program.load({name: to_bf16(value) for name, value in weights.items()})
    return loss


def loss_in_bf16(cheating: Any) -> Any:
    return to_bf16(cheating.program.step())


def doubled(cheating: Any) -> Any:
    return 2 * cheating.program.step()


CHEATS: dict[str, tuple[Framework, str]] = {
    "a quarter of the batch": (Framework(quarter_of_the_batch, phase="inference"), "outputs"),
    "the first output for ever": (Framework(first_output_for_ever, phase="inference"), "outputs"),
    "one output for each batch": (
        Framework(once_for_each_batch, phase="inference"),
        "outputs",
    ),
    "one forward pass for each batch": (Framework(once_for_each_batch, phase="forward"), "forward"),
    "master weights in bf16": (Framework(masters_in_bf16, phase="training"), "lost digits"),
    "loss in bf16": (Framework(loss_in_bf16, phase="training"), "lost digits"),
    "no session": (Framework(never_runs, phase="inference"), "outputs"),
    "bf16 for fp32": (Framework(in_bf16, phase="inference"), "outputs"),
    "host batch": (Framework(first_output_for_ever, phase="inference", data="host"), "outputs"),
    "one sample": (Framework(doubled, phase="inference", batch_size=1), "outputs"),
    "no update": (Framework(without_update, phase="training"), "optimizer step"),
    "every second update": (Framework(every_second_update, phase="training"), "trajectory"),
    "training statistics": (Framework(without_statistics, phase="training"), "statistics"),
    "forward statistics": (Framework(without_statistics, phase="forward"), "statistics"),
    "forward loss": (Framework(first_output_for_ever, phase="forward"), "forward"),
    "first loss for ever": (Framework(first_output_for_ever, phase="training"), "trajectory"),
    "host steps": (
        Framework(first_output_for_ever, phase="training", data="host"),
        "steps from host",
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_certificate_sees_a_step_that_cheats(name: str, bench: Any) -> None:
    framework, item = CHEATS[name]
    items = bench(network, momentum(0.1)).items(framework)
    assert not items[item]["passed"]


def test_certificate_passes_a_step_that_does_not_cheat(bench: Any) -> None:
    items = bench(network, momentum(0.1)).items(Framework(lambda cheating: cheating.program.step()))
    assert [item for item in items.values() if not item["passed"] or item["weak"]] == []
