"""Logs in Torch's style: a heading, then milliseconds by pass.

cltorch, fbnn, glconv and Theano print the same."""

from __future__ import annotations

import re
from typing import Any

from steptime.formats import Original, Row, Rows
from steptime.formats._parse import ratio, scale

# Some logs hold the colours of the terminal.
COLOUR = re.compile(r"\x1b?\[[\d;]*m")
MODEL = re.compile(r"^ModelType: (.+?)\s+Kernels: (\S+)\s+Input shape: (\d+)x(\S+)")
LAYER = re.compile(r"^CONFIG: input = (.+?) \* ker = (.+?) \( ?bs = (\d+) ?, stride = (\d+) ?\)")
DEVICE = re.compile(r"^(?:Running on device|Using gpu device \d+|Using OpenCL device): *(.+)$")
# nn.SpatialConvolutionMM            :updateOutput():      132.52
TIME = re.compile(r"^(\S.*?)\s+:(\w+)(?:\(\))?:\s+([\d.]+)\s*$")
# theano.tensor.nnet.conv            ==> fprop         ==>      45
THEANO = re.compile(r"^(\S.*?)\s+==> (fprop|bprop inputs|bprop weights)\s+==>\s+([\d.]+)")
FAILED = re.compile(r"^(\S+) (fprop|bprop inputs|bprop weights): FAILED (.*)$")
TOC = re.compile(r"^\s*(updateOutput|updateGradInput|accGradParameters) sys\.toc\(\)\s+([\d.]+)")
TOC_LAYER = re.compile(r"^\d+\s+(l\d+)\s*$")
# Forward and Backward repeat what the three passes say, so they are left out.
PASSES = {
    "updateOutput": "forward",
    "updateGradInput": "backward inputs",
    "accGradParameters": "backward weights",
    "TOTAL": "training",
    "fprop": "forward",
    "bprop inputs": "backward inputs",
    "bprop weights": "backward weights",
}
MARKS = (b":updateOutput():", b"ModelType: ", b"==> fprop", b"updateOutput sys.toc()")
FRAMEWORKS = ("cltorch", "glconv", "theano")


def recognises(head: bytes) -> bool:
    return any(mark in head for mark in MARKS)


def read(file: Original) -> Rows:
    # What the headings so far say about the times below them.
    heading: dict[str, Any] = {"framework": _framework(file)}
    for number_of_line, line in enumerate(COLOUR.sub("", file.text).splitlines(), 1):
        heading |= _parse_heading(line)
        location = f"line {number_of_line}"
        if (match := TIME.match(line)) or (match := THEANO.match(line)):
            mode, name, milliseconds = match.groups()
            if name in PASSES:
                seconds = scale(milliseconds, 1e-3)
                settings = heading | {"mode": mode.strip()}
                yield _read_time(file, location, settings, PASSES[name], seconds)
        elif match := TOC.match(line):
            yield _read_time(file, location, heading, PASSES[match[1]], scale(match[2], 1.0))
        elif match := FAILED.match(line):
            settings = heading | {"mode": match[1], "failure": match[3][:300]}
            yield _read_time(file, location, settings, PASSES[match[2]], None)


def _parse_heading(line: str) -> dict[str, Any]:
    if match := DEVICE.match(line):
        return {"device": match[1].strip()}
    if match := MODEL.match(line):
        model, mode, batch, shape = match.groups()
        return {"model": model.strip(), "mode": mode, "batch": int(batch), "shape": shape}
    if match := LAYER.match(line):
        inputs, kernel, batch, stride = match.groups()
        shape = f"input {inputs} kernel {kernel} stride {stride}".replace(" x ", "x")
        return {"operator": "convolution", "shape": shape, "batch": int(batch)}
    if match := TOC_LAYER.match(line):
        return {"operator": "convolution", "shape": match[1].upper(), "batch": 128}
    return {}


def _framework(file: Original) -> str:
    return next((name for name in file.folders.parts if name in FRAMEWORKS), "torch7")


def _read_time(
    file: Original, location: str, settings: dict[str, Any], phase: str, seconds: float | None
) -> Row:
    batch = settings.get("batch")
    metrics = {"step_time": seconds}
    if phase in ("training", "forward"):
        metrics["throughput"] = ratio(batch, seconds)
    return file.run(
        location,
        {
            "model": settings.get("model"),
            "operator": settings.get("operator"),
            "shape": settings.get("shape"),
            "phase": phase,
            "framework": settings["framework"],
            "mode": settings.get("mode"),
            "device": settings.get("device"),
            "devices": 1,
            "replica_batch": batch,
            "effective_batch": batch,
            "suite": "convnet-benchmarks",
            "unit": "images",
            "precision": "fp16" if "fp16" in file.folders.name else "fp32",
        },
        metrics,
        failure=settings.get("failure", ""),
    )
