"""Certificates as sentences, as a table, as Markdown and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steptime.cli import output
from steptime.cli.render.table import Column, print_table
from steptime.core.case import Case

if TYPE_CHECKING:
    from steptime.analysis.certificates import Certificate
    from steptime.run.certify import Outcome

Item = dict[str, Any]
LEGEND = """\
worst: the largest error divided by its bound; above 1 the item is wrong.
proves little: items whose bound exceeds half of the value; they count as no proof."""
MARKDOWN_LEGEND = """\
*pass*: training and inference; *inference*: inference only, because the framework cannot train
here. The number is the largest error divided by its bound; above 1 the network **fails**. *r*:
training was proved on a reduced copy, outputs at full size. Items after `~` have bounds so wide
that they prove little; they count as no proof. *unproved*: no error is too large, but a required
item proves little.
"""
COLUMNS = (
    Column("framework", stays=True),
    Column("certified"),
    Column("worst", drop=1, stays=True),
    Column("semantics", drop=3),
    Column("proves little", least=12, drop=2),
    Column("id", drop=4),
)
# Short enough for a table of 100 columns.
SHORT = {
    "gradients": "grads",
    "optimizer step": "step",
    "optimizer rule": "rule",
    "stored weights": "stored",
    "steps from host": "host",
    "dropout masks": "masks",
}


def to_document(outcome: Outcome) -> dict[str, Any]:
    certificate = outcome.certificate
    failure = outcome.attempt.failure
    return {
        "case": outcome.case.to_dict(),
        "certificate": certificate.to_dict() if certificate else None,
        "failure": {"cause": failure.cause, "reason": failure.reason} if failure else None,
        "no_training": outcome.no_training or None,
    }


def show(outcomes: Sequence[Outcome]) -> None:
    certified = _with_certificate(outcomes)
    if len(certified) == 1:
        output.echo(_sentence(*certified[0]))
    else:
        output.echo(_count_sentence(outcomes, certified))
    if certified:
        output.echo()
        _show_table(certified)
        output.echo(LEGEND)
    for outcome, certificate in certified:
        if not certificate.passed:
            verdict = "wrong" if certificate.is_wrong else "unproved"
            output.echo(f"{verdict}: {_explain_failure(outcome, certificate)}")
    for outcome in outcomes:
        if outcome.certificate is None:
            output.echo(f"none: {_label(outcome.case)}: {_reason(outcome)}")


def _with_certificate(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, Certificate]]:
    return [(outcome, outcome.certificate) for outcome in outcomes if outcome.certificate]


def _sentence(outcome: Outcome, certificate: Certificate) -> str:
    case, worst = outcome.case, certificate.worst
    verb = "computes" if certificate.passed else "does not compute"
    if certificate.unproved and not certificate.is_wrong:
        verb = "is not proved to compute"
    scope = "" if certificate.covers == "training" else " in inference, which is all it can do here"
    name = f"{case.framework} {_short_version(certificate.version)} {case.mode} {case.precision}"
    proved = sum(item["passed"] and not item["weak"] for item in certificate.items)
    items = f"{proved} of {len(certificate.items)} items are proved"
    largest = f"largest error {_share(worst)} of its bound ({worst['item']}, {worst['where']})"
    return f"{name} {verb} {case.workload}{scope}: {items}, {largest}."


def _count_sentence(
    outcomes: Sequence[Outcome], certified: Sequence[tuple[Outcome, Certificate]]
) -> str:
    passed = sum(certificate.passed for _, certificate in certified)
    networks = {outcome.case.workload for outcome in outcomes}
    precisions = {outcome.case.precision for outcome in outcomes}
    network = networks.pop() if len(networks) == 1 else "their networks"
    precision = f" in {precisions.pop()}" if len(precisions) == 1 else ""
    return (
        f"{passed} of {len(outcomes)} framework modes are proved to compute {network}{precision}."
    )


def _show_table(certified: Sequence[tuple[Outcome, Certificate]]) -> None:
    """Settings that all rows share are left out: the sentence above names them."""
    cases = [outcome.case for outcome, _ in certified]
    columns = [
        name
        for name in ("workload", "precision")
        if len({getattr(case, name) for case in cases}) > 1
    ]
    rows = []
    for case, (_, certificate) in zip(cases, certified, strict=True):
        worst = certificate.worst
        rows.append(
            [
                *(getattr(case, name) for name in columns),
                f"{case.framework} {_short_version(certificate.version)} {case.mode}",
                _verdict(certificate),
                f"{_share(worst)} {SHORT.get(worst['item'], worst['item'])}",
                _semantics(certificate),
                ", ".join(_short_names(certificate.weak)),
                certificate.name,
            ]
        )
    print_table([*map(Column, columns), *COLUMNS], rows)


def _verdict(certificate: Certificate) -> str:
    if certificate.passed:
        return certificate.covers
    return "NO" if certificate.is_wrong else "unproved"


def _semantics(certificate: Certificate) -> str:
    """Where it is proved that the network is the right one, and not only near to it."""
    network = " reduced" if certificate.is_reduced else ""
    if certificate.case.precision == "fp64" or "certificate" in certificate.semantics:
        return f"fp64{network}"
    return f"{certificate.case.precision}{network}"


def _short_names(items: Sequence[str]) -> list[str]:
    return [SHORT.get(name, name) for name in items]


def show_markdown(outcomes: Sequence[Outcome]) -> None:
    """A row for each network and precision, with each reason once below the table."""
    heads: dict[tuple[str, str], str] = {}
    rows: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    notes: list[str] = []
    for outcome in outcomes:
        case = outcome.case
        lowering = (case.framework, case.mode)
        if outcome.certificate:
            version = _short_version(outcome.certificate.version)
            heads[lowering] = f"{case.framework} {version} {case.mode}"
        # A mode without any certificate has no version.
        heads.setdefault(lowering, f"{case.framework} {case.mode}")
        row = rows.setdefault((case.workload, case.precision), {})
        row[lowering] = _markdown_cell(outcome, notes)
    _echo_markdown_row(["network", "precision", *heads.values()])
    _echo_markdown_row(["---"] * (2 + len(heads)))
    for (network, precision), cells in rows.items():
        _echo_markdown_row([network, precision, *(cells.get(name, "") for name in heads)])
    output.echo_verbatim(f"\n{MARKDOWN_LEGEND}")
    for number, text in enumerate(notes, 1):
        output.echo_verbatim(f"{number}. {text}")


def _echo_markdown_row(cells: Sequence[str]) -> None:
    output.echo_verbatim(f"| {' | '.join(cells)} |")


def _markdown_cell(outcome: Outcome, notes: list[str]) -> str:
    certificate = outcome.certificate
    if certificate is None:
        return f"none ({_note_number(_reason(outcome), notes)})"
    if not certificate.passed:
        verdict = "**fails**" if certificate.is_wrong else "unproved"
        return f"{verdict} ({_note_number(_explain_failure(outcome, certificate), notes)})"
    verdict = "pass" if certificate.covers == "training" else certificate.covers
    cell = f"{verdict} {'r ' if certificate.is_reduced else ''}{_share(certificate.worst)}"
    if certificate.weak:
        cell += f" ~{', '.join(_short_names(certificate.weak))}"
    return cell


def _explain_failure(outcome: Outcome, certificate: Certificate) -> str:
    reasons = [_error(item) for item in certificate.failed]
    if not reasons and certificate.unproved:
        reasons.append(f"the bound of {', '.join(certificate.unproved)} proves little")
    if not certificate.semantics.get("passed", True):
        reasons.append(f"its certificate {certificate.semantics['certificate'][-8:]} fails in fp64")
    return f"{_label(outcome.case)}: {'; '.join(reasons)}"


def _note_number(text: str, notes: list[str]) -> int:
    if text not in notes:
        notes.append(text)
    return notes.index(text) + 1


def _error(item: Item) -> str:
    # JSON has no infinity: null stands for it.
    error = float("inf") if item["error"] is None else item["error"]
    bound = float("inf") if item["bound"] is None else item["bound"]
    network = " of the reduced copy" if item.get("network") == "reduced" else ""
    location = f"at {item['where']}"
    return f"{item['item']}{network}: error {error:.2g}, bound {bound:.2g}, {location}"


def _reason(outcome: Outcome) -> str:
    failure = outcome.attempt.failure
    if failure is None:
        return "no result"
    is_reference = outcome.attempt.case.framework != outcome.case.framework
    prefix = "its reference: " if is_reference else ""
    return f"{prefix}{failure.cause.replace('_', ' ')}: {failure.reason}"


def _share(item: Item) -> str:
    share = item["share"]
    if share is None:
        return "∞"
    return f"{share:.2g}"


def _short_version(version: str) -> str:
    """Without the build: 2.13.0+cpu, 2026.4.1-22982-…"""
    return re.split(r"[+-]", version)[0]


def _label(case: Case) -> str:
    return f"{case.workload} {case.framework} {case.mode} {case.precision}"
