"""Charts as files: SVG and PNG by vl-convert, without a browser."""

from __future__ import annotations

import json
import re
from typing import Any

from steptime.core.errors import NotInstalled

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw(suffix: str, chart: dict[str, Any]) -> bytes:
    """The content of a file .svg, .png or .json (the Vega-Lite itself)."""
    if suffix == ".json":
        return json.dumps(chart, indent=1).encode()
    try:
        import vl_convert
    except ImportError:
        raise NotInstalled(
            "This command needs the report extra: pip install 'steptime[report]'"
        ) from None
    if suffix == ".png":
        # Twice the size, so that a PNG is sharp on screens of high resolution.
        return bytes(vl_convert.vegalite_to_png(clean_text(chart), scale=2))
    return str(vl_convert.vegalite_to_svg(clean_text(chart))).encode()


def clean_text(value: Any) -> Any:
    """Without characters that XML does not have: vl-convert ends the whole process at one."""
    if isinstance(value, str):
        return NOT_XML.sub("\ufffd", value)
    if isinstance(value, dict):
        return {clean_text(key): clean_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_text(item) for item in value]
    return value
