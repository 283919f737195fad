"""Charts as files: SVG, PNG and PDF by vl-convert, without a browser."""

from __future__ import annotations

import json
import re
from typing import Any

from steptime.charts.converter import Converter

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

CONVERTER = Converter()


def draw(suffix: str, chart: dict[str, Any]) -> bytes:
    """The content of a file .svg, .png, .pdf or .json (the Vega-Lite itself)."""
    if suffix == ".json":
        return json.dumps(chart, indent=1).encode()
    return CONVERTER.convert(suffix, clean_text(chart))


def clean_text(value: Any) -> Any:
    """Without characters that XML does not have: vl-convert ends the whole process at one."""
    if isinstance(value, str):
        return NOT_XML.sub("\ufffd", value)
    if isinstance(value, dict):
        return {clean_text(key): clean_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_text(item) for item in value]
    return value
