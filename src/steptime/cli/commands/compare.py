"""`steptime compare A B`: is B faster? Live, or from what is stored; refused where the two are not the same work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli import output
from steptime.cli.render.compare_by_node import compare_by_node
from steptime.cli.render.compare_sessions import FEW, compare_sessions, latest
from steptime.cli.render.format import processes, settings
from steptime.cli.request import read_plan, reading_store, store_folder, warn_of_problems
from steptime.core.case import SETTINGS, Case
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.analysis.compare import Comparison, Verdict
    from steptime.core.record import Attempt, Record
    from steptime.plan.expand import Plan
    from steptime.store.readable import ReadableStore

REFUSED = 5
WORDS = {
    "same": "B and A take the same time",
    "likely same": "B and A likely take the same time",
    "inconclusive": "Inconclusive",
}
ITSELF = "nothing: a case against itself, of which one in 20 differs by chance"
REMARKS = {
    "too_few_processes": FEW,
    "not_interleaved": "measured at different times; the usual change between sessions is in the interval",
}
Answer = tuple["Comparison", "Attempt", "Attempt"]
"""With one attempt of each side, which tells what was compared."""


def compare_command(
    a: Annotated[
        str, typer.Argument(help="key=value,… to measure now, or the id of a result or a session.")
    ],
    b: Annotated[str, typer.Argument(help="The same; live, only what differs from A.")],
    preset: Annotated[str, typer.Option(help="quick, standard, gold or single.")] = "standard",
    force: Annotated[
        str, typer.Option(help="Why to compare though the work differs.", show_default=False)
    ] = "",
    by_node: Annotated[
        bool,
        typer.Option(
            "--by-node", help="A and B are queries of stored results, paired by their node."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Is B faster than A?

    The answer is faster, slower, same or inconclusive, with the ratio and its interval. Live, A is for example
    workload=lenet5,batch_size=64 and B mode=compiled; stored, A and B are ids of results, or of sessions, whose cases
    are compared one by one. With --by-node, A is for example 'data=scratch&device=k80' and B data=local."""
    from steptime.run.compare import Refused

    if ("=" in a) != ("=" in b):
        raise SteptimeError(
            "Compare two cases (key=value,…) or two stored results (ids), not one of each."
        )
    try:
        if by_node:
            compare_by_node(a, b, force=force, json=json)
            return
        if "=" in a:
            answer = _live(*_plans(a, b, preset), force)
        else:
            store = reading_store()
            first, second = _named(a, b, store)
            if len(first) + len(second) > 2:
                compare_sessions(first, second, store, force=force, json=json)
                return
            answer = _stored(first[0], second[0], store, force)
    except Refused as refusal:
        _refuse(refusal, json=json)
    else:
        output.document(_document(*answer)) if json else _show(*answer)


def _plans(a: str, b: str, preset: str) -> tuple[Plan, Plan]:
    """B has the settings of A that it does not name itself."""
    first = settings(a.split(","))
    return read_plan("", first, preset), read_plan("", {**first, **settings(b.split(","))}, preset)


def _live(a: Plan, b: Plan, force: str) -> Answer:
    from steptime.cli.render.watch import SessionWatch
    from steptime.run.compare import compare
    from steptime.store.folder import FolderStore

    store = FolderStore(store_folder())
    with SessionWatch() as watch:
        cases = (a.cases[0], b.cases[0])
        compared = compare(cases, b.protocol, store, force=force, watch=watch)
    return (compared.comparison, *compared.pairs[-1])


def _stored(first: Record, second: Record, store: ReadableStore, force: str) -> Answer:
    from steptime.analysis.certificates import TASK, certificates
    from steptime.analysis.compare import different_work, noted, stored
    from steptime.run.compare import Refused

    one, other = latest(first), latest(second)
    known = certificates(store.attempts(TASK))
    reasons = different_work(one, other, known)
    if reasons and not force:
        raise Refused(reasons)
    comparison = noted(stored(first, second), (one, other), known)
    if reasons:
        comparison = replace(
            comparison, remarks=(*comparison.remarks, f"force ({force}): {'; '.join(reasons)}")
        )
    return comparison, one, other


def _named(a: str, b: str, store: ReadableStore) -> tuple[list[Record], list[Record]]:
    try:
        return _records(a, store), _records(b, store)
    finally:
        warn_of_problems(store)  # the result that was not found may be one of them


def _records(word: str, store: ReadableStore) -> list[Record]:
    from steptime.cli.render.stored import named

    found = named(word, store)
    measured = [record for record in found if record.measurements]
    if not measured:
        raise SteptimeError(
            f"{found[0].case.label} ({word}) has no measurement: {found[0].status}."
        )
    return measured


def _refuse(refusal: Any, *, json: bool) -> None:
    if json:
        output.document({"verdict": None, "refused": refusal.reasons})
    else:
        output.say("Refused: the two are not the same work.")
        for reason in refusal.reasons:
            output.say(f"  {reason}")
        output.say('To compare all the same, say why: --force "…".')
    raise typer.Exit(REFUSED)


def _differing(a: Case, b: Case) -> dict[str, tuple[Any, Any]]:
    pairs = {name: (getattr(a, name), getattr(b, name)) for name in SETTINGS}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _document(comparison: Comparison, a: Attempt, b: Attempt) -> dict[str, Any]:
    sides = {
        name: {"case": side.case.to_dict(), "session": side.session}
        for name, side in (("a", a), ("b", b))
    }
    return {
        **comparison.to_dict(),
        **sides,
        "differs": _differing(a.case, b.case),
        "machine": b.machine,
    }


def _show(comparison: Comparison, a: Attempt, b: Attempt) -> None:
    pairs = f"{comparison.units} pair{'s' * (comparison.units > 1)}"
    units = pairs if b.pair else f"{processes(comparison.units)} each"
    output.say(f"{_sentence(comparison.verdict)}, {units}.")
    output.say()
    output.say(f"A        {a.case.label}")
    output.say(f"B        {b.case.label}")
    pairs_of = _differing(a.case, b.case).items()
    differing = [f"{name} {_word(first)} → {_word(second)}" for name, (first, second) in pairs_of]
    output.say(f"differs  {', '.join(differing) or ITSELF}")
    if comparison.verdict.p is not None:
        output.say(
            f"chance   {comparison.verdict.p:.2g} for such a ratio if there were no difference"
        )
    if comparison.cpu_time is not None:
        output.say(f"by CPU time alone: {_sentence(comparison.cpu_time)}")
    for remark in comparison.remarks:
        output.say(f"note: {REMARKS.get(remark, remark)}")


def _word(value: Any) -> str:
    return "none" if value == "" else str(value)


def _sentence(verdict: Verdict) -> str:
    interval = "" if verdict.low is None else f" ({verdict.low:.3f} … {verdict.high:.3f})"
    return (
        f"{WORDS.get(verdict.word, f'B is {verdict.word}')}: ×{verdict.ratio:.3f} in time{interval}"
    )
