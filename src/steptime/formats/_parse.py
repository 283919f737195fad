"""How files of other tools spell numbers, tables and names. Knows no format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

PRECISIONS = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "single": "fp32",
    "fp32": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}
# Spellings of frameworks. Of two that begin at the same letter, the one listed first counts.
FRAMEWORKS = {
    "tensorrt": "tensorrt",
    "onnxruntime": "onnxruntime",
    "onnx runtime": "onnxruntime",
    "openvino": "openvino",
    "hugectr": "hugectr",
    "mxnet": "mxnet",
    "paddle": "paddlepaddle",
    "mindspore": "mindspore",
    "oneflow": "oneflow",
    "tensorflow lite": "tflite",
    "tensorpack": "tensorflow",
    "tensorflow": "tensorflow",
    "tflite": "tflite",
    "vllm": "vllm",
    "jax": "jax",
    "flax": "jax",
    "caffe2": "caffe2",
    "caffe": "caffe",
    "cntk": "cntk",
    "tvm": "tvm",
    "tinygrad": "tinygrad",
    "nemo": "pytorch",
    "pytorch": "pytorch",
    "torch": "pytorch",
}
# Counts above this are no counts, and no database holds them.
LARGEST_COUNT = 1e15


def number(value: Any) -> float | None:
    """A finite number such as `1,013.01` or `12.5 `; None for `N/A`, `NaN` or a truth value."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip().replace(",", "")
    try:
        parsed = float(text)
    except ValueError:
        return None
    return parsed if isfinite(parsed) else None


def integer(value: Any) -> int | None:
    """A count; None for a fraction."""
    parsed = number(value)
    if parsed is None or abs(parsed) >= LARGEST_COUNT or parsed != int(parsed):
        return None
    return int(parsed)


def scale(value: Any, factor: float) -> float | None:
    parsed = number(value)
    return None if parsed is None else parsed * factor


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """None if one of the two is missing or zero."""
    return numerator / denominator if numerator and denominator else None


def clean_text(value: Any) -> str:
    """The text with single blanks."""
    return " ".join(str(value).split()) if value is not None else ""


def precision(value: Any) -> str:
    text = clean_text(value).lower()
    return PRECISIONS.get(text, text)


def framework(value: Any) -> str:
    """The framework that a free text names; its first word if it names none."""
    spelling = _find_framework(_expand_tf(value))
    if spelling:
        return FRAMEWORKS[spelling]
    return re.split(r"[\s,;/]", clean_text(value).lower())[0]


def version(value: Any) -> str:
    """The version that follows the framework's name in a free text."""
    text = _expand_tf(value)
    spelling = _find_framework(text)
    if not spelling:
        return ""
    separator = r"[\s/:=-]*(?:nightly)?[\s/:=-]*"
    match = re.search(re.escape(spelling) + separator + r"v?(\d+(?:\.\d+)+[\w.+-]*)", text)
    return match[1].rstrip(".,") if match else ""


def software(row: dict[str, Any]) -> str:
    """A text from which a reader gets the row's framework and version back."""
    text = row.get("software") or ""
    name = row.get("framework") or ""
    release = row.get("framework_version") or ""
    if framework(text) == name and version(text) == release:
        return text
    return " ".join(filter(None, (name, release)))


def _expand_tf(value: Any) -> str:
    return re.sub(r"\btf(?=[\s\d=-])", "tensorflow", clean_text(value).lower())


def _find_framework(text: str) -> str:
    """The spelling that comes first in the text; empty if there is none."""
    by_position = {}
    for spelling in reversed(FRAMEWORKS):
        if spelling in text:
            by_position[text.find(spelling)] = spelling
    return by_position[min(by_position)] if by_position else ""


def table_rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by the header's names, with the line that each ends on."""
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, restval="")
    try:
        for row in reader:
            cells = {}
            for name in row:
                # Cells beyond the header have no name.
                if isinstance(name, str):
                    cells[name.strip()] = clean_text(row[name])
            yield reader.line_num, cells
    except csv.Error:
        return


def located_rows(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a table, as JSON objects or as CSV, each with its location."""
    if text.lstrip()[:1] == "[":
        return json_objects(text)
    return [(f"line {line}", dict(row)) for line, row in table_rows(text)]


def parse_json(text: str) -> Any:
    """None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_objects(text: str) -> list[tuple[str, dict[str, Any]]]:
    """JSON objects with their locations: one, an array of them, or one on each line."""
    document = parse_json(text)
    if isinstance(document, dict):
        return [("object", document)]
    if isinstance(document, list):
        return list(_array_objects("", document))
    objects: list[tuple[str, dict[str, Any]]] = []
    for number_of_line, line in enumerate(text.splitlines(), 1):
        value = parse_json(line) if line.strip() else None
        location = f"line {number_of_line}"
        if isinstance(value, dict):
            objects.append((location, value))
        elif isinstance(value, list):
            objects += _array_objects(f"{location}, ", value)
    return objects


def _array_objects(prefix: str, values: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for position, value in enumerate(values, 1):
        if isinstance(value, dict):
            yield f"{prefix}entry {position}", value


def first_match(pattern: str, text: str) -> str:
    """The first group of the first match; empty if there is none."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match and match[1] else ""


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
