"""MLPerf's descriptions of systems, and the power meter's side files: kept, and read by the readers of results."""

from __future__ import annotations

from steptime.formats import Found, Original, Skipped

TITLE = "MLPerf system descriptions"


def recognises(name: str, head: bytes) -> bool:
    described = b'"accelerator_model_name"' in head and b'"host_processor_model_name"' in head
    return head.lstrip()[:1] == b"{" and (described or b'"ptd_client_server' in head)


def read(file: Original) -> Found:
    yield Skipped(
        "file", "describes a system or a meter: used by the results beside it, no result itself"
    )
