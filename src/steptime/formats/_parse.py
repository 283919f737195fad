"""How foreign files spell numbers, tables and names. Knows no format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

PRECISIONS = {
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "single": "fp32", "fp32": "fp32",
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8": "fp8",
}  # fmt: skip
# Spelt in many ways; in the order in which a text that names several means the first.
FRAMEWORKS = {
    "tensorrt": "tensorrt", "onnxruntime": "onnxruntime", "onnx runtime": "onnxruntime", "openvino": "openvino",
    "hugectr": "hugectr", "mxnet": "mxnet", "paddle": "paddlepaddle", "mindspore": "mindspore", "oneflow": "oneflow",
    "tensorflow lite": "tflite", "tensorpack": "tensorflow", "tensorflow": "tensorflow", "tflite": "tflite",
    "vllm": "vllm", "jax": "jax", "flax": "jax", "caffe2": "caffe2", "caffe": "caffe", "cntk": "cntk", "tvm": "tvm",
    "tinygrad": "tinygrad", "nemo": "pytorch", "pytorch": "pytorch", "torch": "pytorch",
}  # fmt: skip


def number(value: Any) -> float | None:
    """Finite, or nothing: `1,013.01`, `12.5 `, `3`; not `N/A`, `NaN` or a truth value."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip().replace(",", "")
    try:
        found = float(text)
    except ValueError:
        return None
    return found if isfinite(found) else None


def whole(value: Any) -> int | None:
    """A count: whole, and not beyond what any database holds."""
    found = number(value)
    return int(found) if found is not None and abs(found) < 1e15 and found == int(found) else None


def scaled(value: Any, factor: float) -> float | None:
    found = number(value)
    return None if found is None else found * factor


def spelled(value: Any) -> str:
    return " ".join(str(value).split()) if value is not None else ""


def precision(value: Any) -> str:
    text = spelled(value).lower()
    return PRECISIONS.get(text, text)


def framework(value: Any) -> str:
    """The framework that a free text names; the text's first word where it names none."""
    word = _named(_software(value))
    text = spelled(value).lower()
    return FRAMEWORKS[word] if word else re.split(r"[\s,;/]", text)[0] if text else ""


def version(value: Any) -> str:
    """What follows the framework's name in a free text."""
    text = _software(value)
    found = re.search(
        re.escape(_named(text)) + r"[\s/:=-]*(?:nightly)?[\s/:=-]*v?(\d+(?:\.\d+)+[\w.+-]*)", text
    )
    return found[1].rstrip(".,") if found and _named(text) else ""


def software(row: dict[str, Any]) -> str:
    """A text from which a reader gets the row's framework and version back: its own where that does."""
    text, named = (
        row.get("software") or "",
        (row.get("framework") or "", row.get("framework_version") or ""),
    )
    return text if (framework(text), version(text)) == named else " ".join(filter(None, named))


def _software(value: Any) -> str:
    return re.sub(r"\btf(?=[\s\d=-])", "tensorflow", spelled(value).lower())


def _named(text: str) -> str:
    """The first of the known names in it; of those that begin there the one that is listed first."""
    places = {text.find(word): word for word in reversed(FRAMEWORKS) if word in text}
    return places[min(places)] if places else ""


def table(text: str, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the header's names, with the line that each ends on."""
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restval="")
    try:
        for row in reader:
            yield (
                reader.line_num,
                {(name or "").strip(): spelled(row[name]) for name in row if isinstance(name, str)},
            )
    except csv.Error:
        return


def parsed(text: str) -> Any:
    """A JSON value; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def objects(text: str) -> list[tuple[str, dict[str, Any]]]:
    """JSON objects with their places: one, an array of them, or one on each line."""
    whole_text = parsed(text)
    if isinstance(whole_text, dict):
        return [("object", whole_text)]
    if isinstance(whole_text, list):
        return [
            (f"entry {i}", entry)
            for i, entry in enumerate(whole_text, 1)
            if isinstance(entry, dict)
        ]
    lines = (
        (f"line {i}", parsed(line)) for i, line in enumerate(text.splitlines(), 1) if line.strip()
    )
    return [
        (place if isinstance(value, dict) else f"{place}, entry {i}", entry)
        for place, value in lines
        for i, entry in enumerate(value if isinstance(value, list) else [value], 1)
        if isinstance(entry, dict)
    ]


def matches(pattern: str, text: str) -> str:
    """The first group of the first match, or nothing."""
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found and found[1] else ""
