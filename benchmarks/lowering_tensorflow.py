"""TensorFlow's side of `lowering.py`: a `tf.function` with TensorFlow's own optimiser, around `tf.nn` or Keras."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from quadruples import Pair

from steptime import workloads
from steptime.core.case import Case
from steptime.frameworks import tensorflow as framework

framework.versions()  # sets what TensorFlow reads when it is imported
import reference_models_tensorflow as written  # noqa: E402
import tensorflow as tf  # noqa: E402

SIZES = {"resnet50": 2, "ptb-lstm-small": 20}


def about(options: Any) -> dict[str, Any]:
    import keras

    return {
        "device": "cpu",
        "keras": keras.__version__,
        "references": ", ".join(written.REFERENCES),
    }


def cases(options: Any) -> Iterator[tuple[str, Case, str | None]]:
    for name, size in SIZES.items():
        for mode in ("graph",) if options.quick else ("graph", "xla"):
            for phase in ("training", "inference"):
                case = Case(
                    workload=name, framework="tensorflow", mode=mode, phase=phase, batch_size=size
                )
                for reference in [options.reference] if options.reference else written.REFERENCES:
                    yield (
                        f"{name} {phase} {case.precision} batch {size} {mode}, {reference}",
                        case,
                        reference,
                    )


def pair(case: Case, reference: str | None) -> Pair:
    work = workloads.load(case.workload).build(case)
    program = framework.lower(work, case)
    network = written.REFERENCES[str(reference)](case.workload, iter(work.weights.values()))
    values, target = work.batch["input"], tf.constant(work.batch["target"].astype("int32"))
    images = values.ndim == 4
    values = tf.constant(values.transpose(0, 2, 3, 1) if images else values.astype("int32"))
    compiled = case.mode == "xla"
    if case.phase == "inference":
        infer = tf.function(lambda values: network(values, training=False), jit_compile=compiled)
        return Pair(program.step, lambda: infer(values))
    train = tf.function(_training(network, work.optimizer, dense=compiled), jit_compile=compiled)
    return Pair(program.step, lambda: train(values, target))


def forget() -> None:
    import keras

    keras.backend.clear_session()


def _training(network: Any, spec: Any, *, dense: bool) -> Callable[[Any, Any], Any]:
    """`dense`: XLA cannot apply an embedding's gradient as rows alone."""
    own = tf.compat.v1.train
    rule = (
        own.MomentumOptimizer(spec.rate, spec.momentum)
        if spec.momentum
        else own.GradientDescentOptimizer(spec.rate)
    )
    weights = [written.plain(weight) for weight in network.trainable_variables]

    def train(values: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            output = network(values, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(target, output))
        gradients = [
            tf.convert_to_tensor(gradient) if dense else gradient
            for gradient in tape.gradient(loss, weights)
        ]
        rule.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    return train
