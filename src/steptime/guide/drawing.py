"""Charts as files: SVG and PNG by vl-convert, without a browser."""

from __future__ import annotations

import json
from typing import Any

from steptime.core.errors import NotInstalled


def drawn(kind: str, chart: dict[str, Any]) -> bytes:
    if kind == ".json":
        return json.dumps(chart, indent=1).encode()
    try:
        import vl_convert
    except ImportError:
        raise NotInstalled("Pictures need vl-convert; install it with: pip install 'steptime[guide]'") from None
    if kind == ".png":
        return bytes(vl_convert.vegalite_to_png(chart, scale=2))
    return str(vl_convert.vegalite_to_svg(chart)).encode()
