"""TensorFlow, classes 3 and 5: gradients, statistics, optimizer, dropout and low precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from benchmarks.mistakes.mistake import Patcher, Suite
from benchmarks.mistakes.networks import own_network

from steptime.frameworks.tensorflow import program as programs
from steptime.frameworks.tensorflow import settings
from steptime.frameworks.tensorflow import steps as steps_module
from steptime.frameworks.tensorflow.context import LoweringContext
from steptime.frameworks.tensorflow.ops import OPS, images
from steptime.frameworks.tensorflow.optimizer import VariableOptimizer
from steptime.frameworks.tensorflow.steps import Steps

SUITE = Suite("tensorflow", "graph")
NORMAL = own_network("normal")
GATED = own_network("gated")
MLP = "mnist-mlp"
BF16 = {"precision": "bf16"}


# Moving statistics


def wrong_statistics(name: str, text: str, wrong: Any, network: str = NORMAL, **case: Any) -> None:
    """`wrong` gets the old value of a statistic and the new one."""

    def patch(patcher: Patcher) -> None:
        def update(original: Any, self: Steps, context: LoweringContext) -> Any:
            # A mistake of one precision is not made in others.
            if case.get("precision") == "bf16" and context.dtype != tf.bfloat16:
                return original(self, context)
            for key, value in context.statistics.items():
                context.statistics[key] = wrong(tf.cast(self.variables[key], value.dtype), value)
            return original(self, context)

        patcher.function(Steps, "_update_statistics", update)

    SUITE.add(5 if "precision" in case else 3, network, patch, text, name=name, **case)


wrong_statistics(
    "statistics_never_move", "Moving statistics are never updated", lambda old, new: old + 0 * new
)
wrong_statistics(
    "statistics_momentum_0.01",
    "Statistics move by 0.01 for 0.1",
    lambda old, new: old + (new - old) / 10,
    "resnet56-cifar",
)
wrong_statistics(
    "statistics_of_batch",
    "The batch's statistics replace the moving ones",
    lambda old, new: old + (new - old) * 10,
    mode="session",
)
wrong_statistics(
    "statistics_in_bf16",
    "Moving statistics are rounded to bf16",
    lambda old, new: tf.cast(tf.cast(new, tf.bfloat16), new.dtype),
    **BF16,
)


@SUITE(3, NORMAL)
def biased_moving_variance(patch: Patcher) -> None:
    """The moving variance is the biased one, as in Keras without the fused operation."""

    def update(original: Any, self: Steps, context: LoweringContext) -> Any:
        for key, value in context.statistics.items():
            if key.endswith("running_variance"):
                old = 0.9 * tf.cast(self.variables[key], value.dtype)
                # 4 images of 10 × 10 cells.
                context.statistics[key] = old + (value - old) * (399 / 400)
        return original(self, context)

    patch.function(Steps, "_update_statistics", update)


# Gradients and loss


def wrong_gradients(name: str, network: str, text: str, wrong: Any, **case: Any) -> None:
    """`wrong` changes what the optimizer and `gradients` get."""

    def patch(patcher: Patcher) -> None:
        def differentiate(original: Any, compute: Any, weights: Any) -> Any:
            gradients, rest = original(compute, weights)
            return wrong(gradients), rest

        patcher.function(steps_module, "differentiate", differentiate)

    SUITE.add(3, network, patch, text, name=name, **case)


def low_rows(gradients: Any) -> Any:
    tensors = [tf.convert_to_tensor(gradient) for gradient in gradients]
    return [tf.cast(tf.cast(tensor, tf.bfloat16), tensor.dtype) for tensor in tensors]


def last_of_equal_rows(gradients: Any) -> Any:
    """An assignment where a sum belongs."""
    changed = []
    for gradient in gradients:
        if isinstance(gradient, tf.IndexedSlices):
            indices = tf.reshape(gradient.indices, (-1, 1))
            zeros = tf.zeros(gradient.dense_shape, gradient.values.dtype)
            gradient = tf.tensor_scatter_nd_update(zeros, indices, gradient.values)
        changed.append(gradient)
    return changed


wrong_gradients(
    "first_gradient_zero",
    "lenet5",
    "The first layer is not trained",
    lambda gradients: [0 * gradients[0], *gradients[1:]],
)
wrong_gradients("gradients_in_bf16", "resnet56-cifar", "Gradients are rounded to bf16", low_rows)
wrong_gradients(
    "duplicate_tokens_overwrite",
    GATED,
    "The embedding's gradient keeps one of equal tokens",
    last_of_equal_rows,
    mode="eager",
)
wrong_gradients(
    "gradients_halved",
    "lenet5",
    "All gradients are halved",
    lambda gradients: [gradient / 2 for gradient in gradients],
    mode="session",
)


@SUITE(3, "lenet5", mode="eager")
def gradients_clipped_in_step(patch: Patcher) -> None:
    """The optimizer clips each gradient's norm at 1."""

    def update(original: Any, self: VariableOptimizer, gradients: Any) -> Any:
        return original(self, [tf.clip_by_norm(gradient, 1.0) for gradient in gradients])

    patch.function(VariableOptimizer, "update", update)


@SUITE(3, "cifar10-cnn")
def relu_gradient_everywhere(patch: Patcher) -> None:
    """The gradient of ReLU also goes back at negative values."""

    def relu(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
        return x + tf.stop_gradient(tf.nn.relu(x) - x)

    patch.entry(OPS, "relu", relu)


# Optimizer


@SUITE(3, MLP)
def adam_uncorrected(patch: Patcher) -> None:
    """Adam does not correct the bias of its moments."""

    def correction(original: Any, self: VariableOptimizer) -> Any:
        original(self)
        return self.number(self.spec.rate), self.number(self.spec.epsilon)

    patch.function(VariableOptimizer, "_bias_correction", correction)


@SUITE(3, MLP)
def adam_epsilon_hat(patch: Patcher) -> None:
    """Adam has the epsilon of TensorFlow's own operation, which is not corrected."""

    def correction(original: Any, self: VariableOptimizer) -> Any:
        rate, _ = original(self)
        return rate, self.number(self.spec.epsilon)

    patch.function(VariableOptimizer, "_bias_correction", correction)


@SUITE(3, MLP)
def adam_count_per_weight(patch: Patcher) -> None:
    """Adam's step count goes up twice in each step."""

    def correction(original: Any, self: VariableOptimizer) -> Any:
        assert self.step_count is not None
        self.step_count.assign_add(1)
        return original(self)

    patch.function(VariableOptimizer, "_bias_correction", correction)


@SUITE(3, NORMAL)
def nesterov(patch: Patcher) -> None:
    """Momentum is Nesterov's."""

    def momentum(original: Any, self: VariableOptimizer, weight: Any, slots: Any, g: Any) -> Any:
        return tf.raw_ops.ResourceApplyMomentum(
            var=weight.handle,
            accum=slots[0].handle,
            lr=self.number(self.spec.rate),
            grad=tf.convert_to_tensor(g),
            momentum=self.number(self.spec.momentum),
            use_nesterov=True,
        )

    patch.function(VariableOptimizer, "_momentum", momentum)


@SUITE(3, NORMAL, mode="session")
def decay_missing(patch: Patcher) -> None:
    """There is no weight decay."""

    def move(original: Any, self: Any, apply: Any, weight: Any, slots: Any, *rest: Any) -> Any:
        gradient, settings_ = rest
        return [apply(weight, slots, gradient, *settings_)]

    patch.function(VariableOptimizer, "_move", move)


# Dropout


def wrong_dropout(name: str, text: str, wrong: Any, network: str = MLP, **case: Any) -> None:
    """`wrong` gets the context, x and the rate, and is called only if values are dropped."""

    def patch(patcher: Patcher) -> None:
        def dropout(original: Any, layer: Any, weights: Any, context: Any, x: Any) -> Any:
            if not context.training or context.step_count is None or not layer.op.rate:
                return x
            return wrong(context, x, layer.op.rate)

        patcher.entry(OPS, "dropout", dropout)

    SUITE.add(5, network, patch, text, name=name, **case)


def drop(uniform: Any, x: Any, rate: float) -> Any:
    return tf.where(uniform >= rate, x * (1 / (1 - rate)), tf.zeros((), x.dtype))


def over_time(x: Any) -> Any:
    """The shape of one mask for all time; a layer without time drops as it should."""
    return (x.shape[0], 1, x.shape[2]) if len(x.shape) == 3 else x.shape


def seed_of_trace(context: LoweringContext, x: Any, rate: float) -> Any:
    """Drawn by NumPy while the function is traced."""
    return drop(tf.constant(np.random.default_rng(0).random(x.shape)), x, rate)


def without_stream(context: LoweringContext, x: Any, rate: float) -> Any:
    context.draws = 0
    return drop(context.draw_uniform(x.shape), x, rate)


def ignore_backward(context: LoweringContext, x: Any, rate: float) -> Any:
    return x + tf.stop_gradient(drop(context.draw_uniform(x.shape), x, rate) - x)


wrong_dropout("dropout_drawn_in_trace", "The mask is drawn when the step is traced", seed_of_trace)
wrong_dropout("dropout_one_mask_for_layers", "All layers share one mask", without_stream)
wrong_dropout("dropout_ignored_backward", "The backward pass ignores the mask", ignore_backward)
wrong_dropout(
    "dropout_one_mask_for_samples",
    "All samples share one mask",
    lambda context, x, rate: drop(context.draw_uniform((1, *x.shape[1:])), x, rate),
    mode="session",
)
wrong_dropout(
    "dropout_whole_features",
    "Features drop over all time",
    lambda context, x, rate: drop(context.draw_uniform(over_time(x)), x, rate),
    GATED,
)
wrong_dropout(
    "dropout_keeps_rate",
    "The rate is taken for the share that is kept, as in TensorFlow 1",
    lambda context, x, rate: drop(context.draw_uniform(x.shape), x, 1 - rate),
    GATED,
)
wrong_dropout(
    "dropout_unscaled",
    "What is kept is not scaled",
    lambda context, x, rate: (1 - rate) * drop(context.draw_uniform(x.shape), x, rate),
    mode="eager",
)


@SUITE(5, MLP)
def dropout_counts_every_second_step(patch: Patcher) -> None:
    """The mask changes in every second step only."""

    def count(original: Any, self: Steps) -> Any:
        steps = original(self)
        return None if steps is None else steps // 2

    patch.function(Steps, "_count_step", count)


@SUITE(5, MLP, mode="session")
def dropout_count_never_moves(patch: Patcher) -> None:
    """The session never moves the step count: every step has the same mask."""

    def count(original: Any, self: Steps) -> Any:
        return None if self.step_count is None else tf.identity(self.step_count)

    patch.function(Steps, "_count_step", count)


# Low precision


@SUITE(5, NORMAL, **BF16)
def weights_without_masters(patch: Patcher) -> None:
    """Training in bf16 keeps its weights in bf16."""
    patch.function(settings, "is_mixed", lambda original, case: False)


@SUITE(5, "lenet5", **BF16)
def fp32_for_bf16(patch: Patcher) -> None:
    """All phases compute in fp32 where bf16 was asked for."""

    def computed_dtype(original: Any, case: Any) -> Any:
        return tf.float32 if case.precision == "bf16" else original(case)

    patch.function(settings, "computed_dtype", computed_dtype)


@SUITE(5, "lenet5")
def bf16_for_fp32(patch: Patcher) -> None:
    """Activations are bf16 where fp32 was asked for."""

    def computed_dtype(original: Any, case: Any) -> Any:
        return tf.bfloat16 if case.precision == "fp32" else original(case)

    patch.function(settings, "computed_dtype", computed_dtype)


@SUITE(5, "deepmnist", **BF16)
def bias_gradient_summed_in_bf16(patch: Patcher) -> None:
    """Biases are added by the fused operation, which sums its gradient in bf16."""
    patch.function(images, "add_bias", lambda original, y, bias: tf.nn.bias_add(y, bias))


@SUITE(5, GATED, **BF16)
def loss_in_bf16(patch: Patcher) -> None:
    """The softmax of the loss computes in bf16."""

    def low(original: Any, x: Any) -> Any:
        # The loss takes the softmax again, which changes nothing.
        return original(tf.nn.log_softmax(x) if x.dtype == tf.bfloat16 else x)

    patch.function(steps_module, "at_least_fp32", low)


@SUITE(5, "cifar10-cnn", precision="fp16")
def fp16_without_loss_scaling(patch: Patcher) -> None:
    """Training in fp16 does not scale its loss."""
    patch.function(programs, "LossScaling", lambda original, make_variable: None)
