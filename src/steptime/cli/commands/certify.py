"""`steptime certify`: proves that frameworks compute the network, item by item, within what rounding explains."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.watch import Progress
from steptime.cli.request import store_folder
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steptime.analysis.certificates import Certificate
    from steptime.core.job import Job
    from steptime.core.record import Attempt
    from steptime.run.certify import Outcome

ALL_FAILED, SOME_FAILED = 3, 4
NOT_HERE = (Cause.UNSUPPORTED, Cause.NOT_INSTALLED)
ON_CPU, ON_CUDA = ("fp32", "bf16"), ("fp32", "tf32", "bf16", "fp16", "fp8")
LEGEND = """Numbers are an item's largest error as a share of its bound; above 1 it fails.
~ the item proves little: its bound is wider than half of the value, or most of its steps could not be judged."""
PAGE_LEGEND = """*pass*: training and inference; *inference*: that alone, because the framework cannot train here. The
number is the largest error as a share of its bound (`~`: of a bound so wide that it proves little);
beyond 1 it **fails**.
"""
USUAL_STEPS = 20  # of a trajectory; huge networks have fewer
ITEMS = (
    "outputs",
    "loss",
    "gradients",
    "optimizer step",
    "trajectory",
    "optimizer rule",
    "dropout",
)


def certify_command(
    networks: Annotated[
        list[str] | None, typer.Argument(help="Names, or FILE.py:NAME.", show_default=False)
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every network, in every precision that counts.")
    ] = False,
    framework: Annotated[
        list[str] | None, typer.Option(help="Default: all that are installed; repeatable.")
    ] = None,
    precision: Annotated[list[str] | None, typer.Option(help="Default: fp32; repeatable.")] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="Default: the framework's first; repeatable.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda:0, …")] = "cpu",
    again: Annotated[
        bool, typer.Option("--again", help="Prove anew what is proved already.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for a page.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Prove that frameworks compute the same network.

    Outputs, loss, every gradient, an optimiser step, 20 losses and dropout are compared with a float64 reference, each
    within a bound that follows from the precision."""
    precisions = precision or ((ON_CPU if device == "cpu" else ON_CUDA) if all_ else ("fp32",))
    lowerings = [
        (name, word) for name in framework or _installed() for word in mode or first_mode(name)
    ]
    cases = [
        Case(workload=network, framework=name, mode=word, precision=bits, device=device)
        for network, (name, word), bits in product(
            _networks(networks or [], all_), lowerings, precisions
        )
    ]
    outcomes = _certify(cases, again=again)
    if json:
        output.document({"certificates": [_document(outcome) for outcome in outcomes]})
    elif markdown:
        page(outcomes)
    else:
        _show(outcomes)
    _leave(outcomes)


def _networks(names: list[str], every: bool) -> list[str]:
    from steptime import workloads

    if bool(names) == every:
        raise SteptimeError(
            "Name the networks to certify, or say --all; `steptime list networks` shows them."
        )
    for name in names:
        workloads.load(name)  # a misspelt one is told before anything runs
    return workloads.names() if every else names


def _installed() -> list[str]:
    from steptime.cli.framework_info import frameworks
    from steptime.run.certify import REFERENCE

    return [
        one["name"]
        for one in frameworks()
        if one["name"] != REFERENCE and not one["installed"].startswith("no")
    ]


def first_mode(framework: str) -> list[str]:
    from steptime import plugins
    from steptime.cli.framework_info import modes
    from steptime.core.errors import unknown

    if framework not in (known := plugins.names("frameworks")):
        raise unknown("framework", framework, known)
    return modes(framework)[:1] or ["eager"]


def _certify(cases: list[Case], *, again: bool) -> list[Outcome]:
    from steptime.run.certify import certify
    from steptime.store.folder import FolderStore

    with CertifyWatch() as watch:
        return certify(cases, FolderStore(store_folder()), again=again, watch=watch)


class CertifyWatch(Progress):
    def started(self, job: Job, done: int, expected: int) -> None:
        case, reference = job.case, "the reference of " if job.options.get("write") else ""
        words = [
            case.workload,
            *([] if reference else [case.framework, case.mode]),
            job.options["precision"],
        ]
        self.show(f"{done + 1} of {expected}: {reference}{' '.join(words)}")

    def finished(self, attempt: Attempt) -> None: ...


def _document(outcome: Outcome) -> dict[str, Any]:
    found, failure = outcome.certificate, outcome.attempt.failure
    return {
        "case": outcome.case.to_dict(),
        "certificate": found.to_dict() if found else None,
        "failure": {"cause": failure.cause, "reason": failure.reason} if failure else None,
        "no_training": outcome.no_training or None,
    }


def _show(outcomes: list[Outcome]) -> None:
    proved = [(outcome, found) for outcome in outcomes if (found := outcome.certificate)]
    if len(proved) == 1:
        output.say(_sentence(*proved[0]))
    else:
        right = sum(found.passed for _, found in proved)
        output.say(f"{right} of {len(outcomes)} lowerings are proved to compute the network.")
    if proved:
        output.say()
        _table(proved)
        output.say(LEGEND)
    for outcome, found in proved:
        for item in found.items if not found.passed else ():
            if not item["passed"]:
                output.say(f"wrong: {_label(outcome.case)}: {_wrong(item)}")
    for outcome in outcomes:
        if outcome.certificate is None:
            output.say(f"none: {_label(outcome.case)}: {_reason(outcome)}")


def _sentence(outcome: Outcome, found: Certificate) -> str:
    case, passed = outcome.case, sum(item["passed"] for item in found.items)
    verb = "computes" if found.passed else "does not compute"
    alone = "" if found.covers == "training" else " in inference, which is all it can do here"
    worst = found.worst
    largest = f"largest error {_share(worst)} of its bound ({worst['item']}, {worst['where']})"
    name = f"{case.framework} {_short(found.version)} {case.mode} {case.precision}"
    return f"{name} {verb} {case.workload}{alone}: {passed} of {len(found.items)} items pass, {largest}."


def _table(proved: list[tuple[Outcome, Certificate]]) -> None:
    present = [
        name
        for name in ITEMS
        if any(item["item"] == name for _, found in proved for item in found.items)
    ]
    rows = []
    for outcome, found in proved:
        case, shares = outcome.case, {item["item"]: _share(item) for item in found.items}
        own = [
            case.workload,
            case.framework,
            _short(found.version),
            case.mode,
            case.precision,
            found.covers,
        ]
        rows.append(
            [
                *own,
                "yes" if found.passed else "NO",
                *(shares.get(name, "") for name in present),
                found.name,
            ]
        )
    heads = [
        "network",
        "framework",
        "version",
        "mode",
        "precision",
        "covers",
        "certified",
        *(name.removeprefix("optimizer ") for name in present),
        "id",
    ]
    output.table(heads, rows, right=[name.removeprefix("optimizer ") for name in present])


def page(outcomes: Sequence[Outcome]) -> None:
    """A table for a page, a row for each network and precision. Reasons stand below it, each once."""
    lowerings, rows, notes = (
        dict[tuple[str, str], str](),
        dict[tuple[str, str], dict[tuple[str, str], str]](),
        list[str](),
    )
    for outcome in outcomes:
        case, found = outcome.case, outcome.certificate
        name = (case.framework, case.mode)
        if found or name not in lowerings:
            lowerings[name] = " ".join(
                [case.framework, *([_short(found.version)] if found else []), case.mode]
            )
        rows.setdefault((case.workload, case.precision), {})[name] = _cell(outcome, notes)
    body = [[*row, *(cells.get(name, "") for name in lowerings)] for row, cells in rows.items()]
    for line in (
        ["network", "precision", *lowerings.values()],
        ["---"] * (2 + len(lowerings)),
        *body,
    ):
        output.say(f"| {' | '.join(line)} |")
    output.say(f"\n{PAGE_LEGEND}")
    for number, text in enumerate(notes, 1):
        output.say(f"{number}. {text}")


def _cell(outcome: Outcome, notes: list[str]) -> str:
    found = outcome.certificate
    if found is None:
        return f"none ({_noted(_reason(outcome), notes)})"
    if not found.passed:
        wrong = "; ".join(_wrong(item) for item in found.items if not item["passed"])
        return f"**fails** ({_noted(f'{_label(outcome.case)}: {wrong}', notes)})"
    fewer = (
        f", {found.steps} steps" if found.covers == "training" and found.steps < USUAL_STEPS else ""
    )
    return f"{'pass' if found.covers == 'training' else found.covers} {_share(found.worst)}{fewer}"


def _noted(text: str, notes: list[str]) -> int:
    if text not in notes:
        notes.append(text)
    return notes.index(text) + 1


def _wrong(item: dict[str, Any]) -> str:
    error, bound = (
        float("inf") if item[name] is None else item[name] for name in ("error", "bound")
    )
    return f"{item['item']}: error {error:.2g}, bound {bound:.2g}, at {item['where']}"


def _reason(outcome: Outcome) -> str:
    failure = outcome.attempt.failure
    whose = "" if outcome.attempt.case.framework == outcome.case.framework else "its reference: "
    return f"{whose}{failure.cause.replace('_', ' ')}: {failure.reason}" if failure else "no result"


def _share(item: dict[str, Any]) -> str:
    share = item["share"]
    return "∞" if share is None else f"{share:.2g}{'~' * item['weak']}"


def _short(version: str) -> str:
    """Without the build: 2.13.0+cpu, 2026.4.1-22982-…"""
    return re.split(r"[+-]", version)[0]


def _label(case: Case) -> str:
    return f"{case.workload} {case.framework} {case.mode} {case.precision}"


def _leave(outcomes: list[Outcome]) -> None:
    """What a framework cannot do is no failure, unless nothing else was asked for."""
    here = [
        one
        for one in outcomes
        if not (one.attempt.failure and one.attempt.failure.cause in NOT_HERE)
    ]
    wrong = [one for one in here if not one.passed]
    if wrong or not here:
        raise typer.Exit(SOME_FAILED if len(wrong) < len(here) else ALL_FAILED)
