"""The logs that have a form of their own: TensorFlow, neon, ccv, convnet.js."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original
from steptime.formats._parse import matches, number, scaled

TENSORFLOW = re.compile(
    r"^(\S+ \S+): (Forward|Forward-backward) across (\d+) steps, ([\d.]+) \+/- ([\d.]+) sec / batch"
)
NEON = re.compile(
    r"^\| (fprop|bprop|iteration) +\| +([\d.]+) +\| +([\d.]+) +\| +([\d.]+) +\| +([\d.]+) +\| +(\w+)"
)
CCV = re.compile(r"elapsed time for layer (\d+) fprop: ([\d.]+) milliseconds")
CONVNET_JS = re.compile(r"^total: ([\d.]+)ms", re.MULTILINE)
PHASES = {
    "Forward": "forward",
    "Forward-backward": "training",
    "fprop": "forward",
    "bprop": "backward",
    "iteration": "training",
}
NETWORKS = ("alexnet", "overfeat", "vgga", "vgg_a", "googlenet")
# neon's script runs them in this order and does not print their names.
NEON_ORDER = (("alexnet", 128), ("overfeat", 128), ("vgga", 64), ("googlenet", 128))
BATCHES = {"vgga": 64, "vgg_a": 64}


def recognises(head: bytes) -> bool:
    marks = (
        b" sec / batch",
        b"|    Func     |",
        b"elapsed time for layer",
        b"Estimating full batch to take",
    )
    return any(mark in head for mark in marks)


def read(file: Original) -> Found:
    device = matches(r"^name: (.+)$", file.text)
    blocks = 0
    for i, line in enumerate(file.text.splitlines(), 1):
        if found := TENSORFLOW.match(line):
            yield _tensorflow(file, f"line {i}", found, device)
        elif found := NEON.match(line):
            model, batch = NEON_ORDER[min(blocks, len(NEON_ORDER) - 1)]
            blocks += found[1] == "iteration"
            factor = {"msec": 1e-3, "usec": 1e-6}.get(found[6], 1.0)
            told = {"framework": "neon", "model": model, "phase": PHASES[found[1]], "batch": batch}
            yield _run(file, f"line {i}", told, {"step_time": scaled(found[2], factor)})
        elif found := CCV.search(line):
            told = {
                "framework": "ccv",
                "operator": "convolution",
                "shape": f"L{found[1]}",
                "phase": "forward",
                "batch": 128,
            }
            yield _run(file, f"line {i}", told, {"step_time": scaled(found[2], 1e-3)})
        elif found := CONVNET_JS.match(line):
            told = {
                "framework": "convnet.js",
                "operator": "convolution",
                "phase": "forward",
                "batch": 128,
            }
            yield _run(file, f"line {i}", told, {"step_time": scaled(found[1], 1e-3)})


def _tensorflow(file: Original, place: str, found: re.Match[str], device: str) -> Any:
    """Its timer sums 99 steps and divides by 100: the mean is 1 % too small and the spread is made of that alone."""
    model = next((name for name in NETWORKS if name in file.folders.name), "")
    steps, printed = int(found[3]), number(found[4])
    mean = printed * steps / (steps - 1) if printed is not None and steps > 1 else printed
    told = {"framework": "tensorflow", "model": model, "phase": PHASES[found[2]], "device": device}
    told["batch"] = str(BATCHES.get(model, 128))
    return _run(
        file,
        place,
        told,
        {"step_time": mean},
        more={"printed_step_time": printed, "printed_deviation": number(found[5])},
        started=found[1].replace(" ", "T"),
        defects=(
            f"{steps - 1} steps were summed and divided by {steps}: corrected, and the deviation dropped",
        ),
    )


def _run(
    file: Original, place: str, told: dict[str, Any], metrics: dict[str, float | None], **rest: Any
) -> Any:
    batch, seconds = int(told.pop("batch")), metrics["step_time"]
    if told["phase"] != "backward" and seconds:
        metrics["throughput"] = batch / seconds
    fixed = {
        "suite": "convnet-benchmarks",
        "unit": "images",
        "devices": 1,
        "replica_batch": batch,
        "effective_batch": batch,
    }
    fixed["precision"] = "fp16" if "fp16" in file.folders.name else "fp32"
    return file.run(place, told | fixed, metrics, **rest)
