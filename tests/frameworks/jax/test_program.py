from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.graph import adam, momentum


def assert_equal_weights(first: Any, second: Any, tolerance: float = 1e-5) -> None:
    for name, array in first.weights().items():
        np.testing.assert_allclose(
            second.weights()[name], array, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("name", ["residual", "pooled"])
def test_program_computes_the_same_in_both_layouts(lower: Any, work_of: Any, name: str) -> None:
    rows, columns = lower(name), lower(name, layout="nhwc")
    assert columns.resident[0].shape[3] == rows.resident[0].shape[1] == 2  # channels
    for _ in range(3):
        rows.step(), columns.step()
    assert_equal_weights(rows, columns)
    batch = work_of(name).batch
    np.testing.assert_allclose(rows.predict(batch), columns.predict(batch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["residual", "sequence"])
def test_weights_stay_fp32_in_training_and_are_cast_in_inference(
    lower: Any, jax: Any, name: str, precision: str
) -> None:
    low = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    training, inference = (
        lower(name, precision=precision, phase=phase) for phase in ("training", "inference")
    )
    assert training.step().dtype == "float32"  # the loss
    assert {leaf.dtype.name for leaf in jax.tree.leaves(training.state.weights)} == {"float32"}
    assert training.facts()["computed_dtype"] == low
    assert training.facts()["loss_scaling"] is (precision == "fp16")
    assert {leaf.dtype.name for leaf in jax.tree.leaves(inference.state)} == {low}
    assert inference.step().dtype == low


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_step_multiplies_in_the_lower_precision(lower: Any, jax: Any, precision: str) -> None:
    program = lower("residual", precision=precision)
    text = program.run.lower(program.state, *program.resident).as_text()
    products = [
        line
        for line in text.splitlines()
        if "stablehlo.dot_general" in line or "convolution(" in line
    ]
    assert products and not [line for line in products if "f32" in line]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_gradients_in_mixed_precision_are_near_the_exact_ones(
    lower: Any, work_of: Any, precision: str
) -> None:
    batch = work_of("residual").batch
    _, exact = lower("residual", precision="fp64").gradients(batch)
    _, mixed = lower("residual", precision=precision).gradients(batch)
    for name, array in exact.items():
        assert np.linalg.norm(mixed[name] - array) < 0.1 * np.linalg.norm(array) + 1e-3, name


def test_step_copies_a_host_batch_every_time(lower: Any) -> None:
    program = lower("perceptron", phase="inference", data="host")
    before = np.array(program.step())
    program.host[0][:] *= 2
    assert not np.array_equal(program.step(), before)


@pytest.mark.parametrize("data", ["device", "host"])
def test_feed_sets_the_next_batch_without_compiling(lower: Any, work_of: Any, data: str) -> None:
    program, batch = (
        lower("joined", phase="inference", data=data, layout="nhwc"),
        work_of("joined").batch,
    )
    program.step()
    program.feed({**batch, "input": 2 * batch["input"]})
    output = np.array(program.step())
    assert program.compilations() == 1
    np.testing.assert_allclose(
        output, program.predict({**batch, "input": 2 * batch["input"]}), rtol=1e-6
    )


def test_resident_batch_is_a_copy(lower: Any, work_of: Any) -> None:
    from steptime.core.case import Case
    from steptime.frameworks import jax

    work = work_of("perceptron")
    program = jax.lower(work, Case(workload="perceptron", mode="compiled", phase="inference"))
    before = np.array(program.step())
    work.batch["input"] *= 2
    assert np.array_equal(program.step(), before)


def test_forward_has_the_loss_of_training_and_moves_only_statistics(lower: Any) -> None:
    training, forward = lower("residual"), lower("residual", phase="forward")
    before = forward.weights()
    assert forward.step().item() == pytest.approx(training.step().item(), rel=1e-6)
    moved = {
        name for name, array in forward.weights().items() if not np.array_equal(array, before[name])
    }
    assert moved == {name for name in before if "running" in name}


def test_forward_writes_residuals_but_no_copy_of_weights(lower: Any) -> None:
    program = lower("sequence", phase="forward")
    program.launch()
    recorded = program.pending[2]
    shapes = {weight.shape for weight in program.state.weights.values()}
    assert recorded and not [leaf for leaf in recorded if leaf.shape in shapes]


def test_training_step_overwrites_its_state(lower: Any) -> None:
    program = lower("perceptron", momentum(0.1))
    program.step()
    before = program.state
    program.step()
    assert all(value.is_deleted() for value in before.weights.values())


def test_dropout_depends_on_the_seed(lower: Any) -> None:
    first, again, other = (lower("perceptron", seed=seed).step().item() for seed in (1, 1, 2))
    assert first == again != other


def test_dropout_keeps_the_mean(jax: Any) -> None:
    from steptime.frameworks.jax.context import LoweringContext
    from steptime.frameworks.jax.layout import Layout
    from steptime.frameworks.jax.ops.simple import dropout
    from steptime.graph import Net

    net = Net("drop")
    layer = net.graph(net.dropout(net.input(50), 0.2)).layers[-1]
    context = LoweringContext(Layout(last=False), np.float32, training=True, key=jax.random.key(0))
    output = np.asarray(dropout(layer, {}, context, np.ones((200, 50), np.float32)))
    assert set(np.unique(output)) == {0.0, np.float32(1.25)}
    assert np.mean(output == 0) == pytest.approx(0.2, abs=0.02)


def test_gradients_are_computed_without_dropout(lower: Any, work_of: Any) -> None:
    program, batch = lower("perceptron"), work_of("perceptron").batch
    assert program.gradients(batch)[0] == program.gradients(batch)[0]
    assert program.state.moving.key is not None


def test_lstm_equals_the_plain_formula(lower: Any, work_of: Any) -> None:
    work = work_of("sequence")
    w = {name: array.astype(np.float64) for name, array in work.weights.items()}
    x = w["embedding1.weight"][work.batch["input"]]
    h = c = np.zeros((4, 3))
    outputs = []
    for time in range(5):
        gates = (
            x[:, time] @ w["lstm1.weight_input"].T
            + h @ w["lstm1.weight_hidden"].T
            + w["lstm1.bias"]
        )
        i, f, g, o = np.split(gates, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        outputs.append(h @ w["dense1.weight"].T + w["dense1.bias"])
    output = lower("sequence", precision="fp64").predict(work.batch)
    np.testing.assert_allclose(output, np.stack(outputs, axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_weights_equal_those_that_were_loaded(lower: Any, work_of: Any, layout: str) -> None:
    work = work_of("residual")
    program = lower("residual", layout=layout)
    for name, array in program.weights().items():
        np.testing.assert_array_equal(array, work.weights[name], err_msg=name)
        assert array.flags["C_CONTIGUOUS"] and array.dtype == np.float32


def test_weights_are_a_copy(lower: Any) -> None:
    program = lower("perceptron")
    before = program.weights()
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])


@pytest.mark.parametrize("phase", ["training", "forward", "inference"])
def test_step_is_compiled_once(lower: Any, phase: str) -> None:
    program = lower("residual", adam(), phase=phase)
    assert program.compilations() == 0
    for _ in range(3):
        program.step()
    assert program.compilations() == 1


def test_facts_report_the_settings_in_use(lower: Any) -> None:
    facts = lower("residual").facts()
    assert facts["backend"] == "cpu" and facts["threads"] >= 1 and not facts["x64"]
    assert facts["matmul_precision"] == "highest"
    assert facts["weights_dtype"] == "float32"
    assert facts["optimizer"] == "optax, sgd"


def test_program_on_the_cpu_has_no_timer_and_no_memory_stats(lower: Any) -> None:
    program = lower("perceptron")
    assert program.timer is None and program.memory() == {}
