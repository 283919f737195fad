"""MLPerf's descriptions of systems, and the power meter's side files.

They are kept for the readers of results and have no rows."""

from __future__ import annotations

from steptime.formats import Original, Rows, Skipped

TITLE = "MLPerf system descriptions"


def recognises(name: str, head: bytes) -> bool:
    if head.lstrip()[:1] != b"{":
        return False
    is_system = b'"accelerator_model_name"' in head and b'"host_processor_model_name"' in head
    return is_system or b'"ptd_client_server' in head


def read(file: Original) -> Rows:
    yield Skipped(
        "file", "describes a system or a meter: used by the results beside it, no result itself"
    )
