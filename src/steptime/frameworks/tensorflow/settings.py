"""Settings of the process: threads and precision. Every one is set explicitly and recorded."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.errors import SteptimeError

DTYPES = {"fp32": tf.float32, "bf16": tf.bfloat16, "fp16": tf.float16, "fp64": tf.float64}
EXECUTION = {
    "eager": "operation by operation",
    "graph": "tf.function",
    "xla": "tf.function with jit_compile",
    "session": "tf.compat.v1.Session",
}


def is_mixed(case: Case) -> bool:
    """If gradients are possible, weights stay fp32 and each step casts them. Inference casts them
    once."""
    return case.phase != "inference" and case.precision in ("bf16", "fp16")


def stored_dtype(case: Case) -> Any:
    """Of weights."""
    return tf.float32 if is_mixed(case) else DTYPES[case.precision]


def computed_dtype(case: Case) -> Any:
    """Of inputs and activations."""
    return DTYPES[case.precision]


def threads_for(case: Case) -> int:
    return case.threads_of(len(os.sched_getaffinity(0)))


def apply(case: Case) -> None:
    """The first operation in a process starts TensorFlow, which then keeps its threads."""
    threads = threads_for(case)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    except RuntimeError:  # what TensorFlow raises after it has started
        running = tf.config.threading.get_intra_op_parallelism_threads()
        raise SteptimeError(
            f"TensorFlow already runs with {running} threads in this process and the case asks for "
            f"{threads}; start another process for it."
        ) from None


def facts(case: Case) -> dict[str, Any]:
    return {
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", ""),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "tf_xla_flags": os.environ.get("TF_XLA_FLAGS", ""),
        "executed": EXECUTION[case.mode],
        "jit": case.mode == "xla",
        # Convolutions on the CPU know no other layout.
        "layout": "nhwc",
        "weights_dtype": stored_dtype(case).name,
        "computed_dtype": computed_dtype(case).name,
        "synchronised": "every step",
    }
