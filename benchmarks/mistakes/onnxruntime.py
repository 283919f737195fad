"""ONNX Runtime: its step, and half of the mistakes in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.mistakes import onnx as models
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network
from onnxruntime import OrtValue

from steptime.frameworks.onnxruntime.program import OnnxruntimeProgram

SUITE = Suite("onnxruntime", "graph", "inference")
NORMAL = own_network("normal")
GATED = own_network("gated")
BELL = own_network("bell")
Program = OnnxruntimeProgram


@SUITE(1, "lenet5")
def session_never_run(patch: Patcher) -> None:
    """The step returns the bound output and never runs the session."""
    patch.function(Program, "_run_bound", lambda original, self: self.output)


@SUITE(1, "lenet5")
def session_run_once(patch: Patcher) -> None:
    """The step runs the session once and then returns the bound output."""

    def run(original: Any, self: Any) -> Any:
        if not hasattr(self, "ran"):
            self.ran = True
            return original(self)
        return self.output

    patch.function(Program, "_run_bound", run)


@SUITE(1, "lenet5")
def bound_input_not_updated(patch: Patcher) -> None:
    """`feed` does not write the bound input."""
    patch.function(Program, "_place", lambda original, self: None)


@SUITE(1, "lenet5")
def host_batch_kept(patch: Patcher) -> None:
    """With data on the host the step passes the first batch for ever."""

    def run(original: Any, self: Any) -> Any:
        if not hasattr(self, "kept"):
            self.kept = self.input
        return self.session.run(None, {self.graph.input.name: self.kept})[0]

    patch.function(Program, "_run_from_host", run)


@SUITE(1, "lenet5")
def bound_to_another_session(patch: Patcher) -> None:
    """The step runs a session whose model has no last bias; `predict` runs the right one."""

    def run(original: Any, self: Any) -> Any:
        output = original(self).numpy() - self._weights["dense3.bias"]
        return OrtValue.ortvalue_from_numpy(output)

    patch.function(Program, "_run_bound", run)


@SUITE(1, "lenet5")
def output_rounded_to_fp16(patch: Patcher) -> None:
    """The bound step computes with weights in fp16; `predict` does not."""

    def build(original: Any, self: Any) -> None:
        exact = self._weights
        self._weights = {
            name: array.astype(np.float16).astype(np.float32) for name, array in exact.items()
        }
        original(self)
        self._weights = exact

    patch.function(Program, "_build", build)


for number, name, network, patch, text in (
    (
        2,
        "statistics_swapped",
        NORMAL,
        models.wrong_inputs("BatchNormalization", lambda names: [*names[:3], names[4], names[3]]),
        "Moving mean and variance are swapped",
    ),
    (
        2,
        "moving_mean_ignored",
        NORMAL,
        models.wrong_weight("running_mean", np.zeros_like),
        "0 stands for the moving mean",
    ),
    (
        2,
        "scale_for_bias",
        NORMAL,
        models.wrong_inputs(
            "BatchNormalization", lambda names: [names[0], names[2], names[1], *names[3:]]
        ),
        "Scale and bias of batch norm are swapped",
    ),
    (
        2,
        "batch_norm_epsilon_1e-3",
        NORMAL,
        models.wrong_attributes("BatchNormalization", epsilon=1e-3),
        "Batch norm has epsilon 1e-3 for 1e-5",
    ),
    (
        2,
        "batch_norm_epsilon_1e-6",
        "resnet56-cifar",
        models.wrong_attributes("BatchNormalization", epsilon=1e-6),
        "Batch norm has epsilon 1e-6 for 1e-5",
    ),
    (
        2,
        "layer_norm_without_scale",
        own_network("decoder"),
        models.wrong_weight("weight", np.ones_like, op="layer_norm"),
        "Layer norm ignores its scale",
    ),
    (
        2,
        "positions_ignored",
        own_network("decoder"),
        models.ignore("positions"),
        "The positions are not added",
    ),
    (
        2,
        "lstm_without_bias",
        "ptb-lstm-small",
        models.wrong_weight("bias", np.zeros_like, op="lstm"),
        "The LSTM ignores its bias",
    ),
    (
        4,
        "lstm_gates_in_own_order",
        "ptb-lstm-small",
        models.wrong_gates("LSTM_GATES", (0, 1, 2, 3)),
        "The LSTM's gates are not put into ONNX's order",
    ),
    (
        4,
        "gru_resets_before_product",
        GATED,
        models.wrong_op("gru", models.reset_before),
        "The GRU resets its state before the product, ONNX's default",
    ),
    (
        4,
        "gelu_tanh_for_erf",
        BELL,
        models.wrong_settings("gelu", tanh=True),
        "gelu by tanh",
    ),
    (
        4,
        "flatten_with_channels_last",
        "lenet5",
        models.wrong_op("flatten", models.flatten_last),
        "Images are flattened with channels last",
    ),
    (
        4,
        "average_pool_counts_padding",
        "inception-v3",
        models.wrong_attributes("AveragePool", count_include_pad=1),
        "Average pools count their padding",
    ),
    (
        4,
        "same_padding_before_image",
        own_network("strided"),
        models.wrong_attributes("Conv", pads=models.reorder_pads),
        "The larger half of an odd padding goes before the image",
    ),
    (
        4,
        "lrn_alpha_not_divided",
        "googlenet",
        models.wrong_attributes("LRN", alpha=lambda alpha: 5 * alpha),
        "LRN does not divide alpha by the size",
    ),
    (
        4,
        "concat_reversed",
        "googlenet",
        models.wrong_inputs("Concat", lambda names: names[::-1]),
        "Branches are joined in reverse order",
    ),
    (
        4,
        "causal_mask_off_by_one",
        own_network("decoder"),
        models.wrong_constant("mask", models.shift_mask),
        "Causal attention sees one position too many",
    ),
    (
        4,
        "dilation_ignored",
        own_network("grouped"),
        models.wrong_op("conv", models.without_dilation),
        "Convolutions ignore their dilation",
    ),
    (
        2,
        "dense_without_bias",
        own_network("decoder"),
        models.wrong_weight("bias", np.zeros_like, op="dense"),
        "All biases of dense layers are forgotten",
    ),
):
    SUITE.add(number, network, patch, text, name=name)
