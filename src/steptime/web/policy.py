"""What a browser may load and run on the guide's pages: Content Security Policies."""

from __future__ import annotations

HEADER = "Content-Security-Policy"
# Nothing from elsewhere, no inline script: imported text can be shown, never executed.
# Vega needs to set the style attributes of elements.
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# A page that frames another page of ours.
FRAMING_PAGE = f"{PAGE}; frame-src 'self'"
# Perfetto's page styles itself, starts workers and compiles its trace processor. This holds below
# its own path only: it may not connect to other hosts either, and only a page of ours may frame it.
PERFETTO = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' data: blob:; font-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


def page_with_style(style_hash: str) -> str:
    """The policy of a page with one inline style, which its hash names."""
    return PAGE.replace("style-src 'self'", f"style-src 'self' {style_hash}")
