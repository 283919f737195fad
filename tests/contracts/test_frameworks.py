"""What every framework on the shelf must do. The reference in float64 says what is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from steptime import shelf
from steptime.core.case import CHOICES, Case
from steptime.core.errors import NotInstalled, SteptimeError, Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Optimizer, Tensor, Work, adam, momentum, sgd
from steptime.graph.optimizer import BY_NAME
from steptime.graph.weights import initial_weights, load, save

TOLERANCE = {"fp64": 1e-9, "fp32": 1e-4}


def image(net: Net) -> Tensor:
    """Every kind that image networks use, with uneven padding, groups, dilation and two ways to one sum."""
    x = net.conv(net.input(2, 9, 8), 4, 3, stride=2, padding="same")
    y = net.relu(net.batch_norm(net.conv(x, 4, 3, padding=2, dilation=2, groups=2, bias=False)))
    x = net.max_pool(net.add(net.sigmoid(x), y), 3, stride=2, padding=1, ceil=True)
    x = net.average_pool(x, 2, stride=1, padding=1, ceil=True)
    x = net.add(net.flatten(net.tanh(x)), net.flatten(x))
    return net.dense(net.dropout(net.dense(x, 6), 0.5), 3)


def pooled(net: Net) -> Tensor:
    return net.dense(net.global_average_pool(net.conv(net.input(2, 6, 6), 5, 3, bias=False)), 4)


def words(net: Net) -> Tensor:
    return net.dense(net.lstm(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 6), 11)


def plain(net: Net) -> Tensor:
    return net.dense(net.tanh(net.dense(net.input(6), 8)), 4)


NETWORKS = {"image": image, "pooled": pooled, "words": words, "plain": plain}


def work(name: str, optimizer: Optimizer | None = None, batch_size: int = 4) -> Work:
    net = Net(name)
    graph = net.graph(NETWORKS[name](net))
    weights = dict(initial_weights(graph, 0))
    return Work(graph, weights, synthetic_batch(graph, batch_size, 0), optimizer or sgd(0.1))


@dataclass(frozen=True)
class Candidate:
    name: str
    module: Any
    phase: str
    mode: str
    precision: str

    def case(self, **settings: Any) -> Case:
        own = {"phase": self.phase, "mode": self.mode, "precision": self.precision}
        return Case(workload="tiny", framework=self.name, batch_size=4, **{**own, **settings})

    def lower(self, task: Work, **settings: Any) -> Any:
        """Not every framework has every phase; the reason is the test's reason to skip."""
        if reason := self.module.unsupported(self.case(**settings)):
            pytest.skip(reason)
        return self.module.lower(task, self.case(**settings))

    def assert_close(self, found: Any, expected: Any, what: str = "") -> None:
        scale = max(float(np.abs(expected).max()), 1e-3)
        tolerance = TOLERANCE[self.precision]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@pytest.fixture(params=shelf.names("frameworks"))
def framework(request: pytest.FixtureRequest) -> Candidate:
    """In the first phase and mode and at the best precision that it has."""
    name = request.param
    try:
        module = shelf.load("frameworks", name)
        every = [Candidate(name, module, *choice) for choice in product(CHOICES["phase"], CHOICES["mode"], TOLERANCE)]
        return next(candidate for candidate in every if not module.unsupported(candidate.case()))
    except (ImportError, NotInstalled) as problem:
        pytest.skip(f"{name} is not installed: {problem}")


@pytest.fixture(params=TOLERANCE)
def precise(framework: Candidate, request: pytest.FixtureRequest) -> Candidate:
    """At every precision that it has."""
    candidate = replace(framework, precision=request.param)
    if reason := framework.module.unsupported(candidate.case()):
        pytest.skip(reason)
    return candidate


@pytest.mark.parametrize("name", shelf.names("frameworks"))
def test_a_framework_has_the_contracts_functions(name: str) -> None:
    module = shelf.load("frameworks", name)  # must work even where the framework itself is absent
    assert "install" in module.INSTALL
    for function in ("versions", "unsupported", "lower", "is_out_of_memory"):
        assert callable(getattr(module, function))


def test_a_framework_tells_its_versions(framework: Candidate) -> None:
    versions = framework.module.versions()
    assert framework.name in versions
    assert all(isinstance(text, str) for text in versions.values())


@pytest.mark.parametrize("setting", [{"mode": "session"}, {"device": "cuda:99"}])
def test_what_can_not_be_is_a_reason_and_not_a_crash(framework: Candidate, setting: dict[str, str]) -> None:
    reason = framework.module.unsupported(framework.case(**setting))
    assert reason and (next(iter(setting.values())) in reason or "CUDA" in reason)
    with pytest.raises(Unsupported):
        framework.module.lower(work("plain"), framework.case(**setting))


def test_every_framework_infers(framework: Candidate) -> None:
    assert framework.module.unsupported(framework.case(phase="inference")) is None


def test_what_has_no_training_has_no_gradients(framework: Candidate) -> None:
    if not framework.module.unsupported(framework.case(phase="training")):
        pytest.skip(f"{framework.name} trains")
    with pytest.raises(Unsupported, match="gradients"):
        framework.lower(work("plain")).gradients(work("plain").batch)


def test_only_a_lack_of_memory_is_one(framework: Candidate) -> None:
    assert framework.module.is_out_of_memory(MemoryError())
    assert not framework.module.is_out_of_memory(ValueError("wrong"))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_lowers_the_loss(framework: Candidate, name: str) -> None:
    program = framework.lower(work(name, adam(0.01)), phase="training")
    before, _ = program.gradients(work(name).batch)
    for _ in range(40):
        program.step()
    program.wait()
    after, _ = program.gradients(work(name).batch)
    assert after < 0.9 * before


@pytest.mark.parametrize("phase", ["inference", "forward"])
def test_without_training_no_trainable_weight_moves(framework: Candidate, phase: str) -> None:
    task = work("image")
    program = framework.lower(task, phase=phase)
    program.step()
    program.wait()
    weights = program.weights()
    for name in (name for name, weight in task.graph.weights.items() if weight.trainable):
        framework.assert_close(weights[name], task.weights[name], name)


def test_a_program_answers_what_the_engine_asks(framework: Candidate) -> None:
    program = framework.lower(work("plain"))
    assert program.timer is None  # on the CPU
    assert program.step() is not None
    compiled = program.compilations()
    program.step()
    assert program.compilations() == compiled  # all of it in the first step
    assert all(isinstance(value, int) for value in program.memory().values())
    assert isinstance(program.facts(), dict)


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_go_out_and_in_through_a_file(framework: Candidate, name: str, tmp_path: Any) -> None:
    task = work(name)
    first, second = framework.lower(task), framework.lower(task)
    first.step()
    save(tmp_path / "weights", first.weights())
    second.load(load(tmp_path / "weights", task.graph))
    assert first.weights().keys() == task.graph.weights.keys()
    np.testing.assert_array_equal(first.predict(task.batch), second.predict(task.batch))


def test_weights_that_do_not_fit_are_refused(framework: Candidate) -> None:
    program = framework.lower(work("plain"))
    with pytest.raises(SteptimeError, match=r"dense1\.bias"):
        program.load({**program.weights(), "dense1.bias": np.zeros(3)})
    with pytest.raises(SteptimeError, match=r"dense1\.bias"):
        program.load({name: array for name, array in program.weights().items() if name != "dense1.bias"})


def expected(task: Work, **settings: Any) -> Any:
    case = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4, **settings)
    return reference.lower(task, case)


@pytest.mark.parametrize("name", NETWORKS)
def test_predictions_equal_the_references(precise: Candidate, name: str) -> None:
    task = work(name)
    batch = synthetic_batch(task.graph, 3, 1)  # another size than the step's
    output = precise.lower(task, phase="inference").predict(batch)
    assert output.shape == (3, *task.graph[task.graph.output].shape)
    precise.assert_close(output, expected(task).predict(batch))


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_equal_the_references(precise: Candidate, name: str) -> None:
    task = work(name)
    loss, gradients = precise.lower(task, phase="training").gradients(task.batch)
    right_loss, right = expected(task).gradients(task.batch)
    precise.assert_close(loss, right_loss)
    assert gradients.keys() == right.keys()
    for weight in right:
        precise.assert_close(gradients[weight], right[weight], weight)


def test_asking_for_gradients_changes_nothing(framework: Candidate) -> None:
    program = framework.lower(work("image"), phase="training")
    before = program.weights()
    program.gradients(work("image").batch)
    for name, array in program.weights().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


RULES: list[Callable[[], Optimizer]] = [sgd, momentum, adam]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_rule_moves_weights_as_the_reference_does(framework: Candidate, rule: Callable[[], Optimizer]) -> None:
    task = work("plain", rule())
    program, right = framework.lower(task, phase="training"), expected(task)
    for _ in range(5):
        program.step()
        right.step()
    program.wait()
    for name, array in right.weights().items():
        framework.assert_close(program.weights()[name], array, name)


def test_every_rule_is_tried() -> None:
    assert {rule.__name__ for rule in RULES} == set(BY_NAME)


def test_moving_statistics_equal_the_references(framework: Candidate) -> None:
    task = work("image")
    program, right = framework.lower(task, phase="forward"), expected(task, phase="forward")
    program.step()
    right.step()
    program.wait()
    for name in ("batch_norm1.running_mean", "batch_norm1.running_variance"):
        framework.assert_close(program.weights()[name], right.weights()[name], name)


@pytest.mark.parametrize("phase", ["training", "forward"])
def test_dropout_is_drawn_anew_in_every_step(framework: Candidate, phase: str) -> None:
    program = framework.lower(work("image", sgd(0.0)), phase=phase)
    losses = [program.step() for _ in range(6)]
    program.wait()
    assert len({loss.item() if hasattr(loss, "item") else loss for loss in losses}) > 1


def test_a_batch_copied_from_the_host_gives_the_same(framework: Candidate) -> None:
    near, far = (framework.lower(work("plain"), data=data) for data in ("device", "host"))
    near.step()
    far.step()
    for name, array in near.weights().items():
        framework.assert_close(far.weights()[name], array, name)
