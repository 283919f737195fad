"""Steps of all phases, weights and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steptime.core.errors import Unsupported
from steptime.graph import adam, momentum

NAMES = ["residual", "sequence", "perceptron"]


def assert_equal_weights(first: Any, second: Any, tolerance: float = 1e-5) -> None:
    for name, array in first.weights().items():
        np.testing.assert_allclose(
            second.weights()[name], array, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("name", ["residual", "branches"])
def test_step_is_equal_in_both_layouts(lower: Any, work_of: Any, torch: Any, name: str) -> None:
    rows, columns = lower(name), lower(name, layout="nhwc")
    assert columns.input.is_contiguous(memory_format=torch.channels_last)
    for _ in range(3):
        rows.step(), columns.step()
    assert_equal_weights(rows, columns)
    batch = work_of(name).batch
    np.testing.assert_allclose(rows.predict(batch), columns.predict(batch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_trains_mixed_and_infers_with_cast_weights(
    lower: Any, torch: Any, precision: str
) -> None:
    low = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    training, inference = (
        lower("residual", precision=precision, phase=phase) for phase in ("training", "inference")
    )
    assert {p.dtype for p in training.module.parameters()} == {torch.float32}
    assert training.step().dtype is torch.float32  # the loss
    assert training.facts()["autocast_dtype"] == str(low).removeprefix("torch.")
    assert training.facts()["loss_scaling"] is (precision == "fp16")
    assert {p.dtype for p in inference.module.parameters()} == {low}
    assert inference.step().dtype is low


@pytest.mark.parametrize("name", ["residual", "branches", "transformer", "cells"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_gradients_in_mixed_precision_are_near_the_exact_ones(
    lower: Any, work_of: Any, precision: str, name: str
) -> None:
    batch = work_of(name).batch
    _, exact = lower(name, precision="fp64").gradients(batch)
    _, mixed = lower(name, precision=precision).gradients(batch)
    for name, array in exact.items():
        assert np.linalg.norm(mixed[name] - array) < 0.1 * np.linalg.norm(array) + 1e-3, name


def test_lstm_in_bf16_needs_cpu_instructions(lower: Any, torch: Any) -> None:
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this CPU has bf16 instructions")
    with pytest.raises(Unsupported, match="bf16"):
        lower("sequence", precision="bf16")


def test_step_copies_a_host_batch_every_time(lower: Any) -> None:
    program = lower("perceptron", phase="inference", data="host")
    before = program.step().clone()
    program.host[0].mul_(2)
    assert not program.step().equal(before)


def test_step_does_not_see_changes_of_the_callers_batch(lower: Any, work_of: Any) -> None:
    program = lower("perceptron", phase="inference")
    before = program.step().clone()
    work_of("perceptron").batch["input"] *= 2
    assert program.step().equal(before)


def test_forward_step_has_the_training_loss_and_moves_only_statistics(lower: Any) -> None:
    training, forward = lower("residual"), lower("residual", phase="forward")
    before = forward.weights()
    assert forward.step().item() == training.step().item()
    moved = {
        name for name, array in forward.weights().items() if not np.array_equal(array, before[name])
    }
    assert moved == {name for name in before if "running" in name}


def test_forward_step_saves_tensors_for_a_backward_pass(lower: Any, torch: Any) -> None:
    program, saved = lower("residual", phase="forward"), []
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda value: value):
        program.step()
    assert saved


def test_inference_step_records_nothing(lower: Any) -> None:
    assert lower("residual", phase="inference").step().is_inference()


def test_dropout_depends_on_the_seed(lower: Any) -> None:
    first, again, other = (lower("perceptron", seed=seed).step().item() for seed in (1, 1, 2))
    assert first == again != other


def test_gradients_switch_dropout_off_and_on_again(lower: Any, work_of: Any) -> None:
    program, batch = lower("perceptron"), work_of("perceptron").batch
    assert program.gradients(batch)[0] == program.gradients(batch)[0]
    assert program.module.dropping and program.module.training


def test_lstm_follows_its_formulas(lower: Any, work_of: Any) -> None:
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


def test_lstm_second_bias_stays_zero(lower: Any) -> None:
    program = lower("sequence", adam())
    for _ in range(3):
        program.step()
    assert not program.module.get_buffer("lstm1__zero_bias").any()
    assert "lstm1__zero_bias" not in program.module.state_dict()


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_weights_are_returned_as_loaded(lower: Any, work_of: Any, layout: str) -> None:
    work = work_of("residual")
    program = lower("residual", layout=layout)
    for name, array in program.weights().items():
        np.testing.assert_array_equal(array, work.weights[name], err_msg=name)
        assert array.flags["C_CONTIGUOUS"] and array.dtype == np.float32


def test_weights_are_copies(lower: Any) -> None:
    program = lower("perceptron")
    before = program.weights()
    program.step()
    assert not np.array_equal(program.weights()["dense1.weight"], before["dense1.weight"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("name", ["residual", "sequence", "transformer", "cells"])
def test_compiled_step_equals_eager_and_compiles_once(lower: Any, name: str, torch: Any) -> None:
    torch._dynamo.reset()
    eager, compiled = lower(name, momentum(0.1)), lower(name, momentum(0.1), mode="compiled")
    before = compiled.compilations()
    eager.step(), compiled.step()
    first = compiled.compilations()
    for _ in range(2):
        eager.step(), compiled.step()
    assert compiled.compilations() == first > before
    assert_equal_weights(eager, compiled, 1e-4)


@pytest.mark.parametrize("name", ["branches", "transformer", "cells"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_inference_in_half_precision_is_near_the_exact_one(
    lower: Any, work_of: Any, name: str, precision: str
) -> None:
    batch = work_of(name).batch
    exact = lower(name, phase="inference", precision="fp64").predict(batch)
    half = lower(name, phase="inference", precision=precision).predict(batch)
    assert np.abs(half - exact).max() < 0.02 * np.abs(exact).max()


@pytest.mark.parametrize("data", ["device", "host"])
def test_feed_reuses_the_memory_of_the_batch(lower: Any, work_of: Any, data: str) -> None:
    program, batch = lower("perceptron", phase="inference", data=data), work_of("perceptron").batch
    address = program.input.data_ptr()
    program.feed({**batch, "input": 2 * batch["input"]})
    fed = program.step().numpy()
    np.testing.assert_allclose(fed, program.predict({**batch, "input": 2 * batch["input"]}))
    assert program.input.data_ptr() == address


def test_tied_weight_is_one_parameter(lower: Any, work_of: Any) -> None:
    program = lower("transformer")
    assert (
        sum(p.numel() for p in program.module.parameters())
        == work_of("transformer").graph.trainable_parameters
    )


def test_facts_report_threads_optimizer_and_dtype(lower: Any) -> None:
    facts = lower("residual", threads=1).facts()
    assert facts["threads"] == 1
    assert facts["optimizer"] == "SGD, fused"
    assert facts["weights_dtype"] == "float32"
    assert facts["capability"]


def test_cpu_program_has_no_timer_and_no_memory_peaks(lower: Any) -> None:
    program = lower("perceptron")
    assert program.timer is None and program.memory() == {} and program.compilations() == 0
