"""Whether certificates prove that the two sides of a comparison compute the same."""

from __future__ import annotations

from steptime.analysis.certificates import certified_remark, why_uncertified
from steptime.index.matching import Table
from steptime.index.workspace import Workspace

CERTIFIED = "certified"
IMPORTED = "not certified: measured by another tool, so it is unknown whether both compute the same"


def certification(workspace: Workspace, table: Table) -> dict[str, str]:
    """For each pair of different frameworks, by A's id: whether certificates cover both.

    Empty if the frameworks do not differ."""
    if "framework" not in table.differs:
        return {}
    certificates = workspace.certificates()
    run_ids = [row["id"] for pair in table.pairs for row in (pair.a, pair.b)]
    attempts = workspace.last_attempts(run_ids)
    verdicts = {}
    for pair in table.pairs:
        a = attempts.get(pair.a["id"])
        b = attempts.get(pair.b["id"])
        if a is None or b is None:
            verdicts[pair.a["id"]] = IMPORTED
            continue
        reason = why_uncertified(a, b, certificates)
        verdict = f"not certified: {reason}" if reason else certified_remark(a, b, certificates)
        verdicts[pair.a["id"]] = verdict
    return verdicts
