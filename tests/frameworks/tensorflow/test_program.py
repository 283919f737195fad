from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from steptime.core.errors import SteptimeError
from steptime.data.synthetic import synthetic_batch
from steptime.graph import Net, Work, adam, momentum, sgd
from steptime.graph.weights import initial_weights

MODES = ["eager", "graph", "session", "xla"]


def assert_equal_weights(first: Any, second: Any, tolerance: float = 1e-5) -> None:
    for name, array in first.weights().items():
        np.testing.assert_allclose(
            second.weights()[name], array, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("mode", ["graph", "session", "xla"])
@pytest.mark.parametrize("name", ["residual", "sequence"])
def test_program_computes_the_same_in_every_mode(
    lower: Any, work_of: Any, name: str, mode: str
) -> None:
    first, second = (
        lower(name, adam(0.01), mode=each_mode, precision="fp64") for each_mode in ("eager", mode)
    )
    for _ in range(3):
        assert float(second.step()) == pytest.approx(float(first.step()), rel=1e-9)
    assert_equal_weights(first, second, 1e-9)
    batch = synthetic_batch(work_of(name).graph, 3, 1)
    np.testing.assert_allclose(second.predict(batch), first.predict(batch), rtol=1e-8)


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_dropout_depends_on_the_seed(lower: Any, mode: str) -> None:
    first, again, other = (
        float(lower("perceptron", seed=seed, mode=mode).step()) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_program_computes_the_same_in_both_layouts(lower: Any) -> None:
    rows, columns = lower("residual"), lower("residual", layout="nhwc")
    rows.step(), columns.step()
    assert_equal_weights(rows, columns)
    assert rows.facts()["layout"] == columns.facts()["layout"] == "nhwc"


@pytest.mark.parametrize("mode", ["graph", "session"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["residual", "sequence"])
def test_weights_stay_fp32_in_training_and_are_cast_in_inference(
    lower: Any, name: str, precision: str, mode: str
) -> None:
    low = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    training, inference = (
        lower(name, precision=precision, phase=phase, mode=mode)
        for phase in ("training", "inference")
    )
    assert np.asarray(training.step()).dtype == np.float32  # the loss
    assert {variable.dtype.name for variable in training.steps.variables.values()} == {"float32"}
    assert training.facts()["loss_scaling"] is (precision == "fp16")
    assert {variable.dtype.name for variable in inference.steps.variables.values()} == {low}
    assert np.asarray(inference.step()).dtype.name == low


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_step_multiplies_in_the_lower_precision(
    lower: Any, tensorflow: Any, precision: str
) -> None:
    program = lower("residual", precision=precision, mode="session")
    dtypes = set()
    for operation in program.execution.graph.get_operations():
        if operation.type in ("Conv2D", "MatMul"):
            dtypes.add(operation.outputs[0].dtype.name)
    assert dtypes == {program.facts()["computed_dtype"]}


@pytest.mark.parametrize(
    ("precision", "mode"), [("bf16", "graph"), ("fp16", "eager"), ("bf16", "xla")]
)
def test_gradients_in_mixed_precision_are_near_the_exact_ones(
    lower: Any, work_of: Any, precision: str, mode: str
) -> None:
    batch = work_of("residual").batch
    _, exact = lower("residual", precision="fp64", mode="eager").gradients(batch)
    _, mixed = lower("residual", precision=precision, mode=mode).gradients(batch)
    for name, array in exact.items():
        assert np.linalg.norm(mixed[name] - array) < 0.1 * np.linalg.norm(array) + 1e-3, name


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_step_takes_a_host_batch_every_time(lower: Any, mode: str) -> None:
    program = lower("perceptron", phase="inference", data="host", mode=mode)
    before = np.array(program.step())
    program.execution.batch[0][:] *= 2
    assert not np.array_equal(program.step(), before)


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_resident_batch_is_a_copy(work_of: Any, mode: str) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    work = work_of("perceptron")
    program = folder.lower(work, Case(workload="perceptron", mode=mode, phase="inference"))
    before = np.array(program.step())
    work.batch["input"] *= 2
    assert np.array_equal(program.step(), before)


@pytest.mark.parametrize("data", ["device", "host"])
@pytest.mark.parametrize("mode", MODES)
def test_feed_sets_the_next_batch_without_tracing(
    lower: Any, work_of: Any, mode: str, data: str
) -> None:
    program, batch = (
        lower("perceptron", phase="inference", mode=mode, data=data),
        work_of("perceptron").batch,
    )
    before, traces = np.array(program.step()), program.compilations()
    program.feed({**batch, "input": 2 * batch["input"]})
    assert not np.array_equal(program.step(), before)
    program.feed(batch)
    assert np.array_equal(program.step(), before)
    assert program.compilations() == traces


def test_feed_refuses_a_batch_of_another_size(lower: Any, work_of: Any) -> None:
    with pytest.raises(SteptimeError, match=r"\(4, 6\).*\(3, 6\)"):
        lower("perceptron").feed(synthetic_batch(work_of("perceptron").graph, 3, 0))


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_forward_has_the_loss_of_training_and_moves_only_statistics(lower: Any, mode: str) -> None:
    training, forward = (
        lower("residual", phase=phase, mode=mode) for phase in ("training", "forward")
    )
    before = forward.weights()
    assert float(forward.step()) == pytest.approx(float(training.step()), rel=1e-6)
    moved = {
        name for name, array in forward.weights().items() if not np.array_equal(array, before[name])
    }
    assert moved == {name for name in before if "running" in name}


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_gradients_are_computed_without_dropout(lower: Any, work_of: Any, mode: str) -> None:
    program, batch = lower("perceptron", mode=mode), work_of("perceptron").batch
    assert program.gradients(batch)[0] == program.gradients(batch)[0]


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_weights_equal_those_that_were_loaded(lower: Any, work_of: Any, mode: str) -> None:
    work = work_of("residual")
    for name, array in lower("residual", mode=mode).weights().items():
        np.testing.assert_array_equal(array, work.weights[name], err_msg=name)
        assert array.flags["C_CONTIGUOUS"] and array.dtype == np.float32


@pytest.mark.parametrize("mode", ["eager", "session"])
def test_weights_are_a_copy(lower: Any, mode: str) -> None:
    program = lower("perceptron", mode=mode)
    before = program.weights()
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
@pytest.mark.parametrize(("mode", "traces"), [("eager", 0), ("graph", 1), ("session", 1)])
def test_step_is_traced_once(lower: Any, mode: str, traces: int, phase: str) -> None:
    program = lower("residual", momentum(), phase=phase, mode=mode)
    for _ in range(3):
        program.step()
    assert program.compilations() == traces


@pytest.mark.parametrize(("images", "fused"), [(1, False), (2, True)])
def test_batch_norm_of_a_single_image_is_not_fused(images: int, fused: bool) -> None:
    from steptime import workloads
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    case = Case(
        workload="resnet56-cifar",
        batch_size=images,
        framework="tensorflow",
        mode="session",
        phase="inference",
    )
    program: Any = folder.lower(workloads.load(case.workload).build(case), case)
    ops = {operation.type for operation in program.execution.graph.get_operations()}
    assert ("FusedBatchNormV3" in ops) is fused


def test_session_mode_uses_a_session_of_tensorflow_1(lower: Any, tensorflow: Any) -> None:
    execution = lower("perceptron", mode="session").execution
    assert isinstance(execution.session, tensorflow.compat.v1.Session)
    ops = {operation.type for operation in execution.graph.get_operations()}
    assert "ResourceApplyGradientDescent" in ops and "PartitionedCall" not in ops


@pytest.mark.parametrize("phase", ["inference", "training"])
@pytest.mark.parametrize("data", ["device", "host"])
def test_session_runs_a_network_without_weights(phase: str, data: str) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    net = Net("bare")
    graph = net.graph(net.flatten(net.max_pool(net.input(2, 4, 4), 2)))
    case = Case(
        workload="bare",
        framework="tensorflow",
        mode="session",
        phase=phase,
        data=data,
        batch_size=4,
    )
    program = folder.lower(Work(graph, {}, synthetic_batch(graph, 4, 0), sgd()), case)
    assert program.step() is not None and program.weights() == {}


@pytest.mark.live
@pytest.mark.parametrize("mode", MODES)
def test_step_returns_when_everything_is_computed(mode: str) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    net = Net("wide")
    graph = net.graph(net.dense(net.dense(net.input(2000), 2000), 10))
    work = Work(graph, dict(initial_weights(graph, 0)), synthetic_batch(graph, 256, 0), sgd(0.1))
    program = folder.lower(
        work, Case(workload="wide", framework="tensorflow", mode=mode, batch_size=256)
    )
    program.step(), time.sleep(0.1)
    before = time.process_time()
    program.step()
    after = time.process_time()
    # A step that had returned too early would use the CPU now.
    time.sleep(0.1)
    assert time.process_time() - after < 0.3 * (after - before)


def test_program_on_the_cpu_has_no_timer_and_no_memory_stats(lower: Any) -> None:
    program = lower("perceptron")
    program.step(), program.wait()
    assert program.timer is None and program.memory() == {}
