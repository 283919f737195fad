"""What a low precision changes in a network's outputs, in float64 and without chance. Knows arrays alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steptime.core.errors import SteptimeError
from steptime.engine.task_metric import log_softmax, wilson

Array = Any

LEAST_SAMPLES, MOST_SAMPLES = 8, 64
MOST_FLOPS = {"synthetic": 1e11, "test set": 1e12}
MOST_CALLS = 1250  # a test set of 10 000 images in batches of 8
MOST_OUTPUT_BYTES = 1 << 30  # of outputs that are kept until the other precision's are there


def sample_count(batch_size: int, flops: float, output_bytes: int, data: str) -> int:
    """How many samples are compared: whole batches, few enough to cost little, and at least 8. `flops` and
    `output_bytes` are one sample's."""
    most = min(
        MOST_FLOPS[data] // max(flops, 1),
        MOST_OUTPUT_BYTES // output_bytes,
        MOST_CALLS * batch_size,
    )
    if data == "synthetic":
        most = min(most, MOST_SAMPLES)
    return -(-max(int(most), LEAST_SAMPLES) // batch_size) * batch_size


def compared(exact: Sequence[Array], low: Sequence[Array]) -> dict[str, Any]:
    """Outputs of the same batches in fp32 and in the low precision. A position is one row of logits; one with a number
    that is not finite is broken: it counts as a disagreement, and no error can be told of it."""
    samples = (
        (a, b) for one, two in zip(exact, low, strict=True) for a, b in zip(one, two, strict=True)
    )
    tallies = [_tally(_rows(a), _rows(b)) for a, b in samples]
    total = {
        name: sum(tally[name] for tally in tallies) for name in tallies[0] if name != "largest"
    }
    positions, whole = total["positions"], total["positions"] - total["broken"]
    rms = float(np.sqrt(total["squares"] / total["logits"]))
    if not np.isfinite(rms):
        raise SteptimeError(
            "The outputs in fp32 are not finite, so no precision can be compared to them."
        )
    largest = max(tally["largest"] for tally in tallies) if whole else None
    mean = total["error"] / (total["logits"] / positions * whole) if whole else None
    return {
        "samples": len(tallies),
        "positions": positions,
        "broken_positions": total["broken"],
        "largest_logit_error": largest,
        "mean_logit_error": mean,
        "reference_rms": rms,
        "largest_relative_error": _share(largest, rms),
        "mean_relative_error": _share(mean, rms),
        "kl_divergence": total["divergence"] / whole if whole else None,
        "top1_agreement": total["agreed"] / positions,
        "top1_agreement_interval": list(wilson(total["agreed"], positions)),
    }


def _tally(exact: Array, low: Array) -> dict[str, Any]:
    """Of one sample, so that float64 copies stay small."""
    whole = np.isfinite(low).all(-1)
    exact_kept, low_kept = exact[whole], low[whole]
    error = np.abs(low_kept - exact_kept)
    p, q = log_softmax(exact_kept), log_softmax(low_kept)
    return {
        "positions": len(exact),
        "logits": exact.size,
        "broken": int((~whole).sum()),
        "largest": float(error.max(initial=0.0)),
        "error": float(error.sum()),
        "squares": float(np.square(exact).sum()),
        "divergence": float((np.exp(p) * (p - q)).sum()),
        "agreed": int((exact_kept.argmax(-1) == low_kept.argmax(-1)).sum()),
    }


def _rows(outputs: Array) -> Array:
    return np.asarray(outputs, np.float64).reshape(-1, outputs.shape[-1])


def _share(value: float | None, rms: float) -> float | None:
    """A network whose outputs are all zero has no scale: the error is then told as it is."""
    return None if value is None else value / (rms or 1.0)
