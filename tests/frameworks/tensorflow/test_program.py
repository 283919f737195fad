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
def test_every_mode_takes_the_same_steps(lower: Any, work_of: Any, name: str, mode: str) -> None:
    first, second = (lower(name, adam(0.01), mode=one, precision="fp64") for one in ("eager", mode))
    for _ in range(3):
        assert float(second.step()) == pytest.approx(float(first.step()), rel=1e-9)
    assert_equal_weights(first, second, 1e-9)
    batch = synthetic_batch(work_of(name).graph, 3, 1)
    np.testing.assert_allclose(second.predict(batch), first.predict(batch), rtol=1e-8)


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_the_seed_decides_what_is_dropped(lower: Any, mode: str) -> None:
    first, again, other = (
        float(lower("perceptron", seed=seed, mode=mode).step()) for seed in (1, 1, 2)
    )
    assert first == again != other


def test_both_layouts_compute_the_same(lower: Any) -> None:
    rows, columns = lower("residual"), lower("residual", layout="nhwc")
    rows.step(), columns.step()
    assert_equal_weights(rows, columns)
    assert rows.facts()["layout"] == columns.facts()["layout"] == "nhwc"


@pytest.mark.parametrize("mode", ["graph", "session"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["residual", "sequence"])
def test_training_is_mixed_and_inference_is_cast(
    lower: Any, name: str, precision: str, mode: str
) -> None:
    low = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    training, inference = (
        lower(name, precision=precision, phase=way, mode=mode) for way in ("training", "inference")
    )
    assert np.asarray(training.step()).dtype == np.float32  # the loss
    assert {variable.dtype.name for variable in training.steps.variables.values()} == {"float32"}
    assert training.facts()["loss_scaling"] is (precision == "fp16")
    assert {variable.dtype.name for variable in inference.steps.variables.values()} == {low}
    assert np.asarray(inference.step()).dtype.name == low


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_products_are_computed_in_the_lower_precision(
    lower: Any, tensorflow: Any, precision: str
) -> None:
    program = lower("residual", precision=precision, mode="session")
    products = [
        one for one in program.execution.graph.get_operations() if one.type in ("Conv2D", "MatMul")
    ]
    assert products and {one.outputs[0].dtype.name for one in products} == {
        program.facts()["computed_dtype"]
    }


@pytest.mark.parametrize(
    ("precision", "mode"), [("bf16", "graph"), ("fp16", "eager"), ("bf16", "xla")]
)
def test_mixed_gradients_are_near_the_exact_ones(
    lower: Any, work_of: Any, precision: str, mode: str
) -> None:
    batch = work_of("residual").batch
    _, exact = lower("residual", precision="fp64", mode="eager").gradients(batch)
    _, mixed = lower("residual", precision=precision, mode=mode).gradients(batch)
    for name, array in exact.items():
        assert np.linalg.norm(mixed[name] - array) < 0.1 * np.linalg.norm(array) + 1e-3, name


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_a_batch_in_host_memory_is_handed_over_in_every_step(lower: Any, mode: str) -> None:
    program = lower("perceptron", phase="inference", data="host", mode=mode)
    before = np.array(program.step())
    program.execution.batch[0][:] *= 2
    assert not np.array_equal(program.step(), before)


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_a_resident_batch_is_the_programs_own(work_of: Any, mode: str) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    work = work_of("perceptron")
    program = folder.lower(work, Case(workload="perceptron", mode=mode, phase="inference"))
    before = np.array(program.step())
    work.batch["input"] *= 2
    assert np.array_equal(program.step(), before)


@pytest.mark.parametrize("data", ["device", "host"])
@pytest.mark.parametrize("mode", MODES)
def test_a_fed_batch_is_used_and_nothing_is_traced_anew(
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


def test_a_batch_of_another_size_is_refused(lower: Any, work_of: Any) -> None:
    with pytest.raises(SteptimeError, match=r"\(4, 6\).*\(3, 6\)"):
        lower("perceptron").feed(synthetic_batch(work_of("perceptron").graph, 3, 0))


@pytest.mark.parametrize("mode", ["eager", "graph", "session"])
def test_forward_has_trainings_loss_and_moves_only_statistics(lower: Any, mode: str) -> None:
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
def test_gradients_leave_dropout_out(lower: Any, work_of: Any, mode: str) -> None:
    program, batch = lower("perceptron", mode=mode), work_of("perceptron").batch
    assert program.gradients(batch)[0] == program.gradients(batch)[0]


@pytest.mark.parametrize("mode", ["graph", "session"])
def test_weights_come_out_as_they_went_in(lower: Any, work_of: Any, mode: str) -> None:
    work = work_of("residual")
    for name, array in lower("residual", mode=mode).weights().items():
        np.testing.assert_array_equal(array, work.weights[name], err_msg=name)
        assert array.flags["C_CONTIGUOUS"] and array.dtype == np.float32


@pytest.mark.parametrize("mode", ["eager", "session"])
def test_what_comes_out_is_no_view_of_the_program(lower: Any, mode: str) -> None:
    program = lower("perceptron", mode=mode)
    before = program.weights()
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
@pytest.mark.parametrize(("mode", "traces"), [("eager", 0), ("graph", 1), ("session", 1)])
def test_a_step_is_traced_once(lower: Any, mode: str, traces: int, phase: str) -> None:
    program = lower("residual", momentum(), phase=phase, mode=mode)
    for _ in range(3):
        program.step()
    assert program.compilations() == traces


@pytest.mark.parametrize(("images", "fused"), [(1, False), (2, True)])
def test_one_image_s_normalisation_is_not_left_to_be_fused_with_its_convolution(
    images: int, fused: bool
) -> None:
    from steptime import workloads
    from steptime.core.case import Case
    from steptime.frameworks import tensorflow as folder

    words = {"framework": "tensorflow", "mode": "session", "phase": "inference"}
    case = Case(workload="resnet56-cifar", batch_size=images, **words)
    program: Any = folder.lower(workloads.load(case.workload).build(case), case)
    ops = {operation.type for operation in program.execution.graph.get_operations()}
    assert ("FusedBatchNormV3" in ops) is fused


def test_a_session_is_one_of_the_first_version(lower: Any, tensorflow: Any) -> None:
    execution = lower("perceptron", mode="session").execution
    assert isinstance(execution.session, tensorflow.compat.v1.Session)
    ops = {operation.type for operation in execution.graph.get_operations()}
    assert "ResourceApplyGradientDescent" in ops and "PartitionedCall" not in ops


@pytest.mark.parametrize("phase", ["inference", "training"])
@pytest.mark.parametrize("data", ["device", "host"])
def test_a_network_without_weights_runs_in_a_session(phase: str, data: str) -> None:
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
def test_nothing_is_left_to_do_when_a_step_returns(mode: str) -> None:
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
    time.sleep(0.1)  # a step that went on behind our back would use the CPU now
    assert time.process_time() - after < 0.3 * (after - before)


def test_the_cpu_needs_no_timer_and_keeps_no_account_of_memory(lower: Any) -> None:
    program = lower("perceptron")
    program.step(), program.wait()
    assert program.timer is None and program.memory() == {}
