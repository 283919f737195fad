"""Compares stored results with what the store knows of machines and certificates."""

from __future__ import annotations

from collections.abc import Sequence

from steptime.analysis.certificates import TASK, Certificate, read_certificates
from steptime.analysis.compare import refusal_reasons, with_certificate_remark
from steptime.analysis.session_deviation import machine_key, measured_attempts, read_history
from steptime.analysis.stored import RecordPair, Suite, compare_stored
from steptime.cli.render.comparison import ComparedPair
from steptime.core.record import Record
from steptime.run.compare import Refused, with_force_remark
from steptime.store.readable import ReadableStore


def compare_records(
    first: Record, second: Record, store: ReadableStore, force: str
) -> ComparedPair:
    """Raises Refused if the two did different work, or one is invalid."""
    certificates = read_certificates(store.attempts(TASK))
    pairs = [(first, second)]
    reasons = refuse_different_work(pairs, certificates, force)
    sides = (measured_attempts(first), measured_attempts(second))
    comparison = compare_pairs(pairs, store).rows[0]
    comparison = with_certificate_remark(comparison, sides[0][-1], sides[1][-1], certificates)
    return ComparedPair(with_force_remark(comparison, force, reasons), *sides)


def compare_pairs(pairs: Sequence[RecordPair], store: ReadableStore) -> Suite:
    """The history of the machines is in the same store."""
    machines = {machine_key(measured_attempts(record)) for pair in pairs for record in pair}
    return compare_stored(pairs, read_history(store.records(), machines))


def refuse_different_work(
    pairs: Sequence[RecordPair], certificates: Sequence[Certificate], force: str
) -> list[str]:
    """The reasons in spite of which it is forced. Raises Refused if it is not."""
    # A dictionary as an ordered set: cases often share a reason.
    reasons: dict[str, None] = {}
    for a, b in pairs:
        sides = (measured_attempts(a), measured_attempts(b))
        reasons |= dict.fromkeys(refusal_reasons(*sides, certificates))
    if reasons and not force:
        raise Refused(list(reasons))
    return list(reasons)
