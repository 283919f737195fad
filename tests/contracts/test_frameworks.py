"""What every framework must do. The reference in float64 defines what is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from steptime import plugins
from steptime.core.case import CHOICES, Case
from steptime.core.errors import NotInstalled, SteptimeError, Unsupported
from steptime.data.synthetic import synthetic_batch
from steptime.frameworks import numpy as reference
from steptime.graph import Net, Optimizer, Tensor, Work, adam, adamw, momentum, sgd
from steptime.graph.ops import OPS
from steptime.graph.optimizer import BY_NAME
from steptime.graph.weights import initial_weights, load, save
from steptime.tasks.certify.evidence import Lowering
from steptime.tasks.certify.low_precision import low_precision_comparisons

TOLERANCE = {"fp64": 1e-9, "fp32": 1e-4}


def image(net: Net) -> Tensor:
    """Every op of image networks: uneven padding, groups, dilation, a sum of two branches."""
    x = net.conv(net.input(2, 9, 8), 4, 3, stride=2, padding="same")
    y = net.relu(net.batch_norm(net.conv(x, 4, 3, padding=2, dilation=2, groups=2, bias=False)))
    x = net.max_pool(net.add(net.sigmoid(x), y), 3, stride=2, padding=1, ceil=True)
    x = net.average_pool(x, 2, stride=1, padding=1, ceil=True)
    x = net.add(net.flatten(net.tanh(x)), net.flatten(x))
    return net.dense(net.dropout(net.dense(x, 6), 0.5), 3)


def pooled(net: Net) -> Tensor:
    return net.dense(net.global_average_pool(net.conv(net.input(2, 6, 6), 5, 3, bias=False)), 4)


def recurrent(net: Net) -> Tensor:
    return net.dense(net.lstm(net.lstm(net.embedding(net.tokens(5, 11), 11, 4), 3), 6), 11)


def plain(net: Net) -> Tensor:
    return net.dense(net.tanh(net.dense(net.input(6), 8)), 4)


def joined(net: Net) -> Tensor:
    """Branches, sliced and joined, with a normalisation so strong that its constants count."""
    x = net.lrn(net.conv(net.input(2, 7, 6), 6, 3), 5, alpha=2.0, beta=0.6, k=1.5)
    shortcut = net.pad_channels(net.average_pool(x, 1, stride=2), 1, 2)
    x = net.concat(
        net.relu(net.conv(x, 4, 3, stride=2, padding=1)),
        shortcut,
        net.max_pool(x, 3, stride=2, padding=1),
    )
    return net.dense(net.slice(net.flatten(x), 3, 100), 3)


def attention(net: Net) -> Tensor:
    """Encoder and decoder: one input for source and target, one table for both and the output."""
    tokens = net.tokens(9, 11)
    table = net.embedding(net.slice(tokens, 0, 5), 11, 8)
    x = net.positions(net.scale(table, 8**0.5), learned=False)
    x = net.layer_norm(net.add(x, net.attention(x, x, x, heads=2)))
    x = net.gelu(net.dense(x, 8))
    y = net.layer_norm(
        net.positions(net.tied_embedding(net.slice(tokens, 5, 9), table)), epsilon=1e-3
    )
    together = net.dense(y, 24)
    y = net.add(
        y,
        net.attention(
            *(net.slice(together, at, at + 8) for at in (0, 8, 16)), heads=4, causal=True
        ),
    )
    y = net.concat(y, net.attention(y, x, x, heads=1, scale=1.0), axis=-1)
    return net.tied_dense(net.dense(net.gelu(net.dense(y, 12), tanh=True), 8, bias=False), table)


def cells(net: Net) -> Tensor:
    x = net.gru(net.gru(net.embedding(net.tokens(5, 11), 11, 4), 3), 6)
    return net.dense(net.rnn(net.rnn(x, 5), 4, relu=True), 11)


NETWORKS = {
    "image": image,
    "pooled": pooled,
    "recurrent": recurrent,
    "plain": plain,
    "joined": joined,
    "attention": attention,
    "cells": cells,
}


def work(name: str, optimizer: Optimizer | None = None, batch_size: int = 4) -> Work:
    net = Net(name)
    graph = net.graph(NETWORKS[name](net))
    weights = dict(initial_weights(graph, 0))
    return Work(graph, weights, synthetic_batch(graph, batch_size, 0), optimizer or sgd(0.1))


def test_networks_cover_every_op() -> None:
    assert {layer.op.name for name in NETWORKS for layer in work(name).graph} == set(OPS)


@dataclass(frozen=True)
class Candidate:
    name: str
    module: Any
    phase: str
    mode: str
    precision: str

    def case(self, **settings: Any) -> Case:
        defaults = {"phase": self.phase, "mode": self.mode, "precision": self.precision}
        settings = {**defaults, **settings}
        return Case(workload="tiny", framework=self.name, batch_size=4, **settings)

    def lower(self, task: Work, **settings: Any) -> Any:
        """Skips the test, with the reason, if the framework does not support the case."""
        if reason := self.module.unsupported(self.case(**settings)):
            pytest.skip(reason)
        try:
            return self.module.lower(task, self.case(**settings))
        except Unsupported as problem:
            # A framework may have some ops only. That ours have all is tested in their folders.
            pytest.skip(str(problem))

    def assert_close(self, actual: Any, expected: Any, what: str = "") -> None:
        scale = max(float(np.abs(expected).max()), 1e-3)
        tolerance = TOLERANCE[self.precision]
        np.testing.assert_allclose(
            actual, expected, rtol=tolerance, atol=tolerance * scale, err_msg=what
        )


@pytest.fixture(params=plugins.names("frameworks"))
def framework(request: pytest.FixtureRequest) -> Candidate:
    """In the first phase and mode and at the best precision that it has."""
    name = request.param
    try:
        module = plugins.load("frameworks", name)
        choices = product(CHOICES["phase"], CHOICES["mode"], TOLERANCE)
        candidates = [Candidate(name, module, *choice) for choice in choices]
        return next(c for c in candidates if not module.unsupported(c.case()))
    except (ImportError, NotInstalled) as problem:
        pytest.skip(f"{name} is not installed: {problem}")


@pytest.fixture(params=TOLERANCE)
def precise(framework: Candidate, request: pytest.FixtureRequest) -> Candidate:
    """At every precision that it has; fp32, which all have, in its main mode."""
    mode = framework.module.MODES[0] if request.param == "fp32" else framework.mode
    candidate = replace(framework, precision=request.param, mode=mode)
    if reason := framework.module.unsupported(candidate.case()):
        pytest.skip(reason)
    return candidate


@pytest.mark.parametrize("name", plugins.names("frameworks"))
def test_framework_has_the_functions_of_the_contract(name: str) -> None:
    # This must work even if the framework itself is not installed.
    module = plugins.load("frameworks", name)
    assert "install" in module.INSTALL
    for function in ("versions", "unsupported", "lower", "is_out_of_memory"):
        assert callable(getattr(module, function))


@pytest.mark.parametrize("name", plugins.names("frameworks"))
def test_framework_declares_its_modes(name: str) -> None:
    modes = plugins.load("frameworks", name).MODES
    assert modes and set(modes) <= set(CHOICES["mode"])
    # They can be read without importing the framework.
    assert plugins.read_constant("frameworks", name, "MODES") == modes


@pytest.mark.parametrize("name", plugins.names("frameworks"))
@pytest.mark.parametrize("constant", ["REQUIRES", "OPTIONAL"])
def test_framework_declares_its_packages(name: str, constant: str) -> None:
    packages = getattr(plugins.load("frameworks", name), constant)
    assert plugins.read_constant("frameworks", name, constant) == packages


def test_unsupported_accepts_inference_in_the_first_mode(framework: Candidate) -> None:
    case = framework.case(mode=framework.module.MODES[0], phase="inference")
    assert framework.module.unsupported(case) is None


def test_versions_include_the_framework(framework: Candidate) -> None:
    versions = framework.module.versions()
    assert framework.name in versions
    assert all(isinstance(text, str) for text in versions.values())


@pytest.mark.parametrize("setting", [{"mode": "cudagraph"}, {"device": "cuda:99"}])
def test_unsupported_and_lower_give_a_reason(framework: Candidate, setting: dict[str, str]) -> None:
    reason = framework.module.unsupported(framework.case(**setting))
    assert reason and (next(iter(setting.values())) in reason or "CUDA" in reason)
    with pytest.raises(Unsupported):
        framework.module.lower(work("plain"), framework.case(**setting))


def test_unsupported_accepts_inference(framework: Candidate) -> None:
    assert framework.module.unsupported(framework.case(phase="inference")) is None


def test_gradients_are_unsupported_without_training(framework: Candidate) -> None:
    if not framework.module.unsupported(framework.case(phase="training")):
        pytest.skip(f"{framework.name} trains")
    with pytest.raises(Unsupported, match="gradients"):
        framework.lower(work("plain")).gradients(work("plain").batch)


def test_is_out_of_memory_recognises_only_memory_errors(framework: Candidate) -> None:
    assert framework.module.is_out_of_memory(MemoryError())
    assert not framework.module.is_out_of_memory(ValueError("wrong"))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_step_lowers_the_loss(framework: Candidate, name: str) -> None:
    program = framework.lower(
        work(name, adam(0.01)), phase="training", mode=framework.module.MODES[0]
    )
    before, _ = program.gradients(work(name).batch)
    for _ in range(40):
        program.step()
    program.wait()
    after, _ = program.gradients(work(name).batch)
    assert after < 0.9 * before


@pytest.mark.parametrize("phase", ["inference", "forward"])
def test_step_without_training_moves_no_trainable_weight(framework: Candidate, phase: str) -> None:
    task = work("image")
    program = framework.lower(task, phase=phase)
    program.step()
    program.wait()
    weights = program.weights()
    for name in (name for name, weight in task.graph.weights.items() if weight.trainable):
        framework.assert_close(weights[name], task.weights[name], name)


def test_program_answers_what_the_engine_asks(framework: Candidate) -> None:
    program = framework.lower(work("plain"))
    assert program.timer is None  # on the CPU
    assert program.step() is not None
    compilations = program.compilations()
    program.step()
    assert program.compilations() == compilations  # all of them in the first step
    assert all(isinstance(value, int) for value in program.memory().values())
    assert isinstance(program.facts(), dict)


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_survive_a_file(framework: Candidate, name: str, tmp_path: Any) -> None:
    task = work(name)
    first, second = framework.lower(task), framework.lower(task)
    first.step()
    save(tmp_path / "weights", first.weights())
    second.load(load(tmp_path / "weights", task.graph))
    assert first.weights().keys() == task.graph.weights.keys()
    np.testing.assert_array_equal(first.predict(task.batch), second.predict(task.batch))


def test_load_rejects_weights_that_do_not_fit(framework: Candidate) -> None:
    program = framework.lower(work("plain"))
    with pytest.raises(SteptimeError, match=r"dense1\.bias"):
        program.load({**program.weights(), "dense1.bias": np.zeros(3)})
    with pytest.raises(SteptimeError, match=r"dense1\.bias"):
        program.load(
            {name: array for name, array in program.weights().items() if name != "dense1.bias"}
        )


def expected(task: Work, **settings: Any) -> Any:
    case = Case(workload="tiny", framework="numpy", precision="fp64", batch_size=4, **settings)
    return reference.lower(task, case)


@pytest.mark.parametrize("name", NETWORKS)
def test_predict_equals_the_reference(precise: Candidate, name: str) -> None:
    task = work(name)
    batch = synthetic_batch(task.graph, 3, 1)  # another size than the step's
    output = precise.lower(task, phase="inference").predict(batch)
    assert output.shape == (3, *task.graph[task.graph.output].shape)
    precise.assert_close(output, expected(task).predict(batch))


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_equal_the_reference(precise: Candidate, name: str) -> None:
    task = work(name)
    loss, gradients = precise.lower(task, phase="training").gradients(task.batch)
    right_loss, right = expected(task).gradients(task.batch)
    precise.assert_close(loss, right_loss)
    assert gradients.keys() == right.keys()
    for weight in right:
        precise.assert_close(gradients[weight], right[weight], weight)


def test_gradients_change_no_weight(framework: Candidate) -> None:
    program = framework.lower(work("image"), phase="training")
    before = program.weights()
    program.gradients(work("image").batch)
    for name, array in program.weights().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


RULES = {
    "sgd": sgd(),
    "momentum": momentum(),
    "adam": adam(),
    "adamw": adamw(0.01, weight_decay=2.0),
    "sgd, decay": replace(sgd(), weight_decay=2.0),
    "momentum, decay": momentum(weight_decay=2.0),
    "adam, decay": replace(adam(0.01), weight_decay=2.0),
}


@pytest.mark.parametrize("rule", RULES)
def test_optimizer_moves_weights_like_the_reference(framework: Candidate, rule: str) -> None:
    task = work("plain", RULES[rule])
    program, right = framework.lower(task, phase="training"), expected(task)
    for _ in range(5):
        program.step()
        right.step()
    program.wait()
    for name, array in right.weights().items():
        framework.assert_close(program.weights()[name], array, name)


def test_rules_cover_every_optimizer() -> None:
    assert set(BY_NAME) <= set(RULES)


def test_tied_weight_gets_the_sum_of_all_gradients(framework: Candidate) -> None:
    task = work("attention", momentum(0.1, weight_decay=0.1))
    program, right = framework.lower(task, phase="training"), expected(task)
    for _ in range(3):
        program.step()
        right.step()
    program.wait()
    framework.assert_close(
        program.weights()["embedding1.weight"], right.weights()["embedding1.weight"]
    )


def test_feed_sets_the_batch_without_compiling(framework: Candidate) -> None:
    task = work("plain")
    other = synthetic_batch(task.graph, 4, 1)
    fed = framework.lower(task, phase="training")
    plain = framework.lower(replace(task, batch=other), phase="training")
    fed.step()
    plain.load(fed.weights())
    compilations = fed.compilations()
    fed.feed(other)
    for program in (fed, plain):
        program.step()
        program.wait()
    assert fed.compilations() == compilations
    for name, array in plain.weights().items():
        framework.assert_close(fed.weights()[name], array, name)


def test_kernels_have_names_and_counts(framework: Candidate) -> None:
    program = framework.lower(work("plain"))
    program.step()
    assert all(name and count > 0 for name, count in program.kernels().items())


def test_moving_statistics_equal_the_reference(framework: Candidate) -> None:
    task = work("image")
    program, right = framework.lower(task, phase="forward"), expected(task, phase="forward")
    program.step()
    right.step()
    program.wait()
    for name in ("batch_norm1.running_mean", "batch_norm1.running_variance"):
        framework.assert_close(program.weights()[name], right.weights()[name], name)


@pytest.mark.parametrize("phase", ["training", "forward"])
def test_dropout_differs_in_every_step(framework: Candidate, phase: str) -> None:
    program = framework.lower(work("image", sgd(0.0)), phase=phase)
    losses = [program.step() for _ in range(6)]
    program.wait()
    values = {
        float(np.asarray(loss.detach() if hasattr(loss, "detach") else loss)) for loss in losses
    }
    assert len(values) > 1


def test_step_is_equal_with_data_from_the_host(framework: Candidate) -> None:
    near, far = (framework.lower(work("plain"), data=data) for data in ("device", "host"))
    near.step()
    far.step()
    for name, array in near.weights().items():
        framework.assert_close(far.weights()[name], array, name)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_rounds_what_it_must_and_nothing_else(
    framework: Candidate, precision: str
) -> None:
    candidate = replace(framework, precision=precision, mode=framework.module.MODES[0])
    if reason := framework.module.unsupported(candidate.case()):
        pytest.skip(reason)
    covers = "inference" if candidate.phase == "inference" else "training"
    lower = Lowering(candidate.module, candidate.case())
    comparisons = low_precision_comparisons(lower, work("image"), covers=covers)
    wrong = [entry.where for entry in comparisons if entry.share > 1]
    assert comparisons and not wrong
