"""TensorFlow, class 1: the timed step is not the function that the certificate should prove."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.tensorflow.functions import Functions
from steptime.frameworks.tensorflow.ops import images
from steptime.frameworks.tensorflow.program import TensorflowProgram
from steptime.frameworks.tensorflow.session import Session
from steptime.frameworks.tensorflow.steps import Steps

SUITE = Suite("tensorflow", "graph")
SESSION = {"mode": "session"}
EAGER = {"mode": "eager"}
NORMAL = own_network("normal")


@SUITE(1, "lenet5", **EAGER)
def first_output_for_ever(patch: Patcher) -> None:
    """The step returns its first result for ever."""

    def step(original: Any, self: Functions) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(Functions, "step", step)


@SUITE(1, "lenet5", **SESSION)
def session_run_once(patch: Patcher) -> None:
    """The session runs in the first step; later steps return what it has left."""

    def step(original: Any, self: Session) -> Any:
        if not hasattr(self, "kept"):
            self.kept = original(self)
        return self.kept

    patch.function(Session, "step", step)


@SUITE(1, "lenet5", **SESSION)
def updates_not_run(patch: Patcher) -> None:
    """The session fetches the loss and does not run the updates."""

    def outputs(original: Any, self: Session, batch: Any) -> Any:
        return (original(self, batch)[0], tf.no_op())

    patch.function(Session, "_outputs", outputs)


@SUITE(1, NORMAL, **SESSION)
def statistics_not_run(patch: Patcher) -> None:
    """The session runs the optimizer, but not the updates of moving statistics."""
    patch.function(Steps, "_update_statistics", lambda original, self, context: [])


@SUITE(1, "lenet5", **SESSION)
def resident_batch_not_written(patch: Patcher) -> None:
    """`feed` does not write the session's resident batch."""

    def feed(original: Any, self: Session, arrays: Any) -> None:
        if self.call is None or not self.resident:
            original(self, arrays)

    patch.function(Session, "feed", feed)


@SUITE(1, "lenet5")
def host_batch_cached(patch: Patcher) -> None:
    """With data on the host the step makes its tensors once and then keeps them."""

    def step(original: Any, self: Functions) -> Any:
        if self.case.data != "host":
            return original(self)
        if not hasattr(self, "kept"):
            self.kept = tuple(map(tf.constant, self.batch))
        return self.run(*self.kept)

    patch.function(Functions, "step", step)


@SUITE(1, "lenet5", **EAGER)
def half_of_batch(patch: Patcher) -> None:
    """The inference step computes half of the batch and repeats it."""

    def step(original: Any, self: Functions) -> Any:
        if self.case.phase != "inference" or len(self.batch[0]) == 1:
            return original(self)
        half = self.run(self.batch[0][: len(self.batch[0]) // 2])
        return tf.concat([half, half], 0)

    patch.function(Functions, "step", step)


@SUITE(1, "resnet56-cifar")
def single_image_without_statistics(patch: Patcher) -> None:
    """The path for a single image takes 0 and 1 for the moving statistics."""

    def plain(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        if context.training or x.shape[0] != 1:
            return original(layer, weights, context, x)
        mean = tf.zeros_like(weights["running_mean"])
        neutral = {"running_mean": mean, "running_variance": mean + 1}
        return original(layer, weights | neutral, context, x)

    patch.function(images, "_plain_norm", plain)


@SUITE(1, NORMAL)
def single_image_without_bias(patch: Patcher) -> None:
    """The path for a single image forgets the bias of batch norm."""

    def plain(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        if x.shape[0] == 1:
            weights = weights | {"bias": tf.zeros_like(weights["bias"])}
        return original(layer, weights, context, x)

    patch.function(images, "_plain_norm", plain)


@SUITE(1, "lenet5")
def quarter_of_batch_trained(patch: Patcher) -> None:
    """The training step trains on a quarter of the batch."""

    def train(original: Any, self: Steps, values: Any, target: Any) -> Any:
        return original(self, values[:1], target[:1])

    patch.function(Steps, "train", train)


@SUITE(1, NORMAL)
def forward_by_inference(patch: Patcher) -> None:
    """The forward phase takes its loss from the outputs of inference."""

    def forward(original: Any, self: Steps, values: Any, target: Any) -> Any:
        output = self.infer(values)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, output)
        return tf.reduce_mean(losses), []

    patch.function(Steps, "forward", forward)


@SUITE(1, "lenet5")
def first_target_for_ever(patch: Patcher) -> None:
    """`feed` passes on the inputs and keeps the targets of the first batch."""

    def feed(original: Any, self: TensorflowProgram, batch: Any) -> None:
        original(self, {**batch, "target": self.work.batch["target"]})

    patch.function(TensorflowProgram, "feed", feed)


@SUITE(1, "lenet5")
def traced_with_constant_batch(patch: Patcher) -> None:
    """The traced function has captured the first batch."""

    def prepare(original: Any, self: Functions, steps: Any) -> None:
        original(self, steps)
        run = self.run
        kept: list[Any] = []

        def captured(*batch: Any) -> Any:
            kept[:] = kept or [batch]
            return run(*kept[0])

        self.run = captured

    patch.function(Functions, "prepare", prepare)
