"""OpenVINO: its step, and the other half of the mistakes in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.mistakes import onnx as models
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.openvino.program import OpenvinoProgram

SUITE = Suite("openvino", "graph", "inference")
NORMAL = own_network("normal")
GATED = own_network("gated")
BELL = own_network("bell")
Program = OpenvinoProgram


@SUITE(1, "lenet5")
def request_run_once(patch: Patcher) -> None:
    """The step runs the request once and then returns a view of its output."""

    def run(original: Any, self: Any) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(Program, "_run_resident", run)


@SUITE(1, "lenet5")
def input_not_placed(patch: Patcher) -> None:
    """`feed` does not place the new input."""

    def place(original: Any, self: Any) -> None:
        if not hasattr(self, "placed"):
            self.placed = True
            original(self)

    patch.function(Program, "_place", place)


@SUITE(1, "lenet5")
def host_batch_kept(patch: Patcher) -> None:
    """With data on the host the step passes the first batch for ever."""

    def run(original: Any, self: Any) -> Any:
        if not hasattr(self, "kept"):
            self.kept = self.input
        return self.request.infer({0: self.kept})[0]

    patch.function(Program, "_run_from_host", run)


@SUITE(1, "lenet5")
def quarter_of_batch(patch: Patcher) -> None:
    """The step infers a quarter of the batch and repeats it."""

    def run(original: Any, self: Any) -> Any:
        quarter = max(1, len(self.input) // 4)
        output = self._outputs(self.input[:quarter])
        return np.tile(output, (len(self.input) // quarter, 1))

    patch.function(Program, "_run_resident", run)


@SUITE(1, "lenet5")
def asynchronous_and_not_awaited(patch: Patcher) -> None:
    """The step returns the output of the request before."""

    def run(original: Any, self: Any) -> Any:
        before = getattr(self, "kept", None)
        self.kept = np.array(original(self))
        return self.kept if before is None else before

    patch.function(Program, "_run_resident", run)


for name, text, change in (
    (
        "weights_in_fp16",
        "Weights are stored in fp16, the default of OpenVINO's files",
        models.to_fp16,
    ),
    ("weights_in_bf16", "Weights are stored in bf16", models.to_bf16),
):
    SUITE.add(5, "cifar10-cnn", models.wrong_weight("weight", change), text, name=name)

for number, name, network, patch, text in (
    (
        2,
        "moving_variance_ignored",
        NORMAL,
        models.wrong_weight("running_variance", np.ones_like),
        "1 stands for the moving variance",
    ),
    (
        2,
        "batch_norm_without_bias",
        NORMAL,
        models.wrong_weight("bias", np.zeros_like, op="batch_norm"),
        "Batch norm ignores its bias",
    ),
    (
        2,
        "batch_norm_without_scale",
        "resnet56-cifar",
        models.wrong_weight("weight", np.ones_like, op="batch_norm"),
        "Batch norm ignores its scale",
    ),
    (
        2,
        "variance_for_deviation",
        NORMAL,
        models.wrong_weight("running_variance", np.sqrt),
        "The moving variance is taken for a standard deviation",
    ),
    (
        2,
        "layer_norm_without_bias",
        "transformer-base",
        models.wrong_weight("bias", np.zeros_like, op="layer_norm"),
        "Layer norm ignores its bias",
    ),
    (
        2,
        "layer_norm_epsilon_1e-6",
        BELL,
        models.wrong_attributes("LayerNormalization", epsilon=1e-6),
        "Layer norm has epsilon 1e-6 for 1e-5",
    ),
    (
        2,
        "conv_without_bias",
        "cifar10-cnn",
        models.wrong_weight("bias", np.zeros_like, op="conv"),
        "Convolutions ignore their biases",
    ),
    (
        2,
        "gru_without_hidden_bias",
        GATED,
        models.wrong_weight("bias_hidden", np.zeros_like),
        "The GRU ignores the bias of the candidate's state",
    ),
    (
        2,
        "embedding_scale_ignored",
        "transformer-base",
        models.ignore("scale"),
        "Embeddings are not multiplied by the root of their width",
    ),
    (
        4,
        "gru_gates_in_own_order",
        GATED,
        models.wrong_gates("GRU_GATES", (0, 1, 2)),
        "The GRU's gates are not put into ONNX's order",
    ),
    (
        4,
        "lrn_other_k",
        "googlenet",
        models.wrong_attributes("LRN", bias=2.0),
        "LRN has k = 2 for 1",
    ),
    (
        4,
        "attention_without_scale",
        "transformer-base",
        models.wrong_constant("scale", np.ones_like),
        "Attention does not scale its scores",
    ),
    (
        4,
        "softmax_over_queries",
        "transformer-base",
        models.wrong_attributes("Softmax", axis=-2),
        "Attention's softmax is over the queries",
    ),
    (
        4,
        "slice_off_by_one",
        "transformer-base",
        models.wrong_op("slice", models.slice_later),
        "Slices of features begin and end one too late",
    ),
    (
        4,
        "average_for_max",
        "cifar10-cnn",
        models.wrong_operator("MaxPool", "AveragePool"),
        "Max pools take the mean",
    ),
    (
        4,
        "pool_padding_before_image",
        own_network("strided"),
        models.wrong_pool_pads(lambda pads: tuple((after, before) for before, after in pads)),
        "Pools are padded on the other side",
    ),
    (
        4,
        "relu_left_out",
        "cifar10-cnn",
        models.ignore("relu"),
        "ReLU is left out",
    ),
    (
        4,
        "relu_is_leaky",
        "resnet56-cifar",
        models.wrong_op("relu", lambda original, site: site.add("LeakyRelu", site.x, alpha=0.01)),
        "ReLU lets one percent of negative values through",
    ),
):
    SUITE.add(number, network, patch, text, name=name)
