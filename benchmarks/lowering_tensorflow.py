"""TensorFlow's side of `lowering.py`: a `tf.function` around `tf.nn` or Keras."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from quadruples import Pair

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import tensorflow as framework
from steptime.graph import Optimizer

# Sets the variables that TensorFlow reads when it is imported.
framework.versions()
import reference_models_tensorflow as reference_models  # noqa: E402
import tensorflow as tf  # noqa: E402

BATCH_SIZES = {"resnet50": 2, "ptb-lstm-small": 20}


def describe(options: argparse.Namespace) -> dict[str, Any]:
    import keras

    return {
        "device": "cpu",
        "keras": keras.__version__,
        "references": ", ".join(reference_models.REFERENCES),
    }


def cases(options: argparse.Namespace) -> Iterator[tuple[str, Case, str | None]]:
    modes = ["graph"] if options.quick else ["graph", "xla"]
    references = [options.reference] if options.reference else list(reference_models.REFERENCES)
    for name, size in BATCH_SIZES.items():
        for mode in modes:
            for phase in ("training", "inference"):
                case = Case(
                    workload=name, framework="tensorflow", mode=mode, phase=phase, batch_size=size
                )
                label = f"{name} {phase} {case.precision} batch {size} {mode}"
                for reference in references:
                    yield f"{label}, {reference}", case, reference


def make_pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = framework.lower(work, case)
    build = reference_models.REFERENCES[str(reference)]
    network = build(case.workload, iter(work.weights.values()))
    # TensorFlow needs channels last, and 32-bit tokens are usual.
    inputs = work.batch["input"]
    inputs = inputs.transpose(0, 2, 3, 1) if inputs.ndim == 4 else inputs.astype("int32")
    values = tf.constant(inputs)
    target = tf.constant(work.batch["target"].astype("int32"))
    compiled = case.mode == "xla"
    if case.phase == "inference":
        infer = tf.function(lambda values: network(values, training=False), jit_compile=compiled)
        return Pair(program.step, lambda: infer(values))
    train = _training(network, work.optimizer, dense=compiled)
    train = tf.function(train, jit_compile=compiled)
    return Pair(program.step, lambda: train(values, target))


def clear_caches() -> None:
    import keras

    keras.backend.clear_session()


def _training(network: Any, spec: Optimizer, *, dense: bool) -> Callable[[Any, Any], Any]:
    """`dense`: XLA cannot apply the gradient of an embedding as rows."""
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(spec.rate)
    if spec.momentum:
        optimizer = tf.compat.v1.train.MomentumOptimizer(spec.rate, spec.momentum)
    weights = [
        reference_models.tensorflow_variable(weight) for weight in network.trainable_variables
    ]

    def train(values: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            output = network(values, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, output))
        gradients = tape.gradient(loss, weights)
        if dense:
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    return train
