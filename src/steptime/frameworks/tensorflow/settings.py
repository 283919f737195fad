"""What holds for a whole process: threads and precision. Set explicitly and recorded."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from steptime.core.case import Case
from steptime.core.errors import SteptimeError

DTYPES = {"fp32": tf.float32, "bf16": tf.bfloat16, "fp16": tf.float16, "fp64": tf.float64}
HOW = {
    "eager": "operation by operation",
    "graph": "tf.function",
    "xla": "tf.function with jit_compile",
    "session": "tf.compat.v1.Session",
}


def mixed(case: Case) -> bool:
    """Wherever gradients are possible, weights stay fp32 and are cast inside the step. Inference casts them once."""
    return case.phase != "inference" and case.precision in ("bf16", "fp16")


def stored_dtype(case: Case) -> Any:
    """Of weights."""
    return tf.float32 if mixed(case) else DTYPES[case.precision]


def computed_dtype(case: Case) -> Any:
    """Of inputs and activations."""
    return DTYPES[case.precision]


def threads_for(case: Case) -> int:
    return case.threads_of(len(os.sched_getaffinity(0)))


def apply(case: Case) -> None:
    """The first operation in a process starts TensorFlow, which then keeps its threads."""
    threads, own = threads_for(case), tf.config.threading
    try:
        own.set_intra_op_parallelism_threads(threads)
        own.set_inter_op_parallelism_threads(threads)
    except RuntimeError:  # what TensorFlow raises once it runs
        raise SteptimeError(
            f"TensorFlow already runs with {own.get_intra_op_parallelism_threads()} threads in this process and the "
            f"case asks for {threads}; it needs a process of its own."
        ) from None


def facts(case: Case) -> dict[str, Any]:
    return {
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "threads_between_operations": tf.config.threading.get_inter_op_parallelism_threads(),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", ""),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "tf_xla_flags": os.environ.get("TF_XLA_FLAGS", ""),
        "executed": HOW[case.mode],
        "jit": case.mode == "xla",
        "layout": "nhwc",
        "weights_dtype": stored_dtype(case).name,
        "computed_dtype": computed_dtype(case).name,
        "synchronised": "every step",
    }
