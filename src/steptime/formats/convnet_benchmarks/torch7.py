"""Logs in Torch's style, which cltorch, fbnn, glconv and Theano share: a heading, then milliseconds by pass."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Found, Original, Row
from steptime.formats._parse import scaled

COLOUR = re.compile(r"\x1b?\[[\d;]*m")
MODEL = re.compile(r"^ModelType: (.+?)\s+Kernels: (\S+)\s+Input shape: (\d+)x(\S+)")
LAYER = re.compile(r"^CONFIG: input = (.+?) \* ker = (.+?) \( ?bs = (\d+) ?, stride = (\d+) ?\)")
DEVICE = re.compile(r"^(?:Running on device|Using gpu device \d+|Using OpenCL device): *(.+)$")
TIME = re.compile(r"^(\S.*?)\s+:(\w+)(?:\(\))?:\s+([\d.]+)\s*$")
THEANO = re.compile(r"^(\S.*?)\s+==> (fprop|bprop inputs|bprop weights)\s+==>\s+([\d.]+)")
FAILED = re.compile(r"^(\S+) (fprop|bprop inputs|bprop weights): FAILED (.*)$")
TOC = re.compile(r"^\s*(updateOutput|updateGradInput|accGradParameters) sys\.toc\(\)\s+([\d.]+)")
TOC_LAYER = re.compile(r"^\d+\s+(l\d+)\s*$")
PASSES = {
    "updateOutput": "forward", "updateGradInput": "backward inputs", "accGradParameters": "backward weights",
    "TOTAL": "training", "fprop": "forward", "bprop inputs": "backward inputs", "bprop weights": "backward weights",
}  # fmt: skip


def recognises(head: bytes) -> bool:
    marks = (b":updateOutput():", b"ModelType: ", b"==> fprop", b"updateOutput sys.toc()")
    return any(mark in head for mark in marks)


def read(file: Original) -> Found:
    """Forward and Backward repeat what the three passes say, so they are passed over."""
    told: dict[str, Any] = {"framework": _framework(file)}
    for i, line in enumerate(COLOUR.sub("", file.text).splitlines(), 1):
        if found := DEVICE.match(line):
            told["device"] = found[1].strip()
        elif found := MODEL.match(line):
            told |= {
                "model": found[1].strip(),
                "mode": found[2],
                "batch": int(found[3]),
                "shape": found[4],
            }
        elif found := LAYER.match(line):
            layer = f"input {found[1]} kernel {found[2]} stride {found[4]}".replace(" x ", "x")
            told |= {"operator": "convolution", "shape": layer, "batch": int(found[3])}
        elif found := TOC_LAYER.match(line):
            told |= {"operator": "convolution", "shape": found[1].upper(), "batch": 128}
        elif (found := TIME.match(line)) or (found := THEANO.match(line)):
            if found[2] in PASSES:
                yield _run(
                    file,
                    f"line {i}",
                    told | {"mode": found[1].strip()},
                    (PASSES[found[2]], scaled(found[3], 1e-3)),
                )
        elif found := TOC.match(line):
            yield _run(file, f"line {i}", told, (PASSES[found[1]], scaled(found[2], 1.0)))
        elif found := FAILED.match(line):
            yield _run(
                file,
                f"line {i}",
                told | {"mode": found[1], "failure": found[3][:300]},
                (PASSES[found[2]], None),
            )


def _framework(file: Original) -> str:
    folders = {"cltorch": "cltorch", "glconv": "glconv", "theano": "theano"}
    return next((folders[part] for part in file.folders.parts if part in folders), "torch7")


def _run(file: Original, place: str, told: dict[str, Any], timed: tuple[str, float | None]) -> Row:
    phase, seconds = timed
    batch = told.get("batch")
    whole_step = phase in ("training", "forward") and batch and seconds
    return file.run(
        place,
        {
            "model": told.get("model"), "operator": told.get("operator"), "shape": told.get("shape"), "phase": phase,
            "framework": told["framework"], "mode": told.get("mode"), "device": told.get("device"), "devices": 1,
            "replica_batch": batch, "effective_batch": batch, "suite": "convnet-benchmarks", "unit": "images",
            "precision": "fp16" if "fp16" in file.folders.name else "fp32",
        },
        {"step_time": seconds, "throughput": batch / seconds if whole_step and batch and seconds else None},
        failure=told.get("failure", ""),
    )  # fmt: skip
