"""`steptime certify`: proves, item by item, that frameworks compute the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Annotated

import typer

from steptime.cli import output
from steptime.cli.exit_codes import ALL_FAILED, exit_if_failed
from steptime.cli.options import Json
from steptime.cli.request import parse_settings, store_folder
from steptime.core.case import Case
from steptime.core.cause import Cause
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.run.certify import Outcome

# Nothing is wrong with the framework: it cannot run this case here.
UNAVAILABLE = (Cause.UNSUPPORTED, Cause.NOT_INSTALLED)
# The precisions whose bound is known and that frameworks have on this device.
CPU_PRECISIONS = ("fp32", "bf16")
CUDA_PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8")


def certify_command(
    networks: Annotated[
        list[str] | None, typer.Argument(help="Names, FILE.py:NAME, layout=…", show_default=False)
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every network, in every usual precision.")
    ] = False,
    framework: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Default: all that are installed; repeatable."),
    ] = None,
    precision: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Default: fp32; repeatable.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Default: the framework's first; repeatable."),
    ] = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="cpu, cuda:0, …")] = "cpu",
    again: Annotated[
        bool, typer.Option("--again", help="Certify again what has a certificate.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Networks at a time; each takes a CPU.")
    ] = 1,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    json: Json = False,
) -> None:
    """Prove that frameworks compute the same network.

    Compares outputs, loss, every gradient, an optimizer step, 20 losses and dropout with a float64
    reference. Each must lie within a bound that follows from the precision."""
    arguments = networks or []
    names = _network_names([text for text in arguments if "=" not in text], all_)
    layouts = _layouts([text for text in arguments if "=" in text])
    precisions = precision or _usual_precisions(device, all_)
    # Before anything runs: a misspelt name is refused here.
    lowerings = _lowerings(framework or _testable_frameworks(), mode or [])
    cases = _cases(names, lowerings, precisions, layouts, device)
    if jobs > 1:
        # The same command again, for one network at a time.
        flags = [*_flags("framework", framework), *_flags("mode", mode)]
        flags += [*_flags("precision", precisions), *_flags("device", [device])]
        flags += [text for text in arguments if "=" in text] + ["--again"] * again
        _certify_side_by_side(names, flags, jobs)
        again = False
    outcomes = _certify(cases, again=again)
    _show(outcomes, json=json, markdown=markdown)
    _exit(outcomes)


def _flags(name: str, values: Sequence[str] | None) -> list[str]:
    return [f"--{name}={value}" for value in values or ()]


def _cases(
    networks: Sequence[str],
    lowerings: Sequence[tuple[str, str]],
    precisions: Sequence[str],
    layouts: Sequence[str],
    device: str,
) -> list[Case]:
    """Each network in each lowering, precision and layout."""
    cases = []
    for network, lowering, bits, layout in product(networks, lowerings, precisions, layouts):
        case = Case(workload=network, precision=bits, layout=layout, device=device)
        cases.append(replace(case, framework=lowering[0], mode=lowering[1]))
    return cases


def _lowerings(frameworks: list[str], modes: list[str]) -> list[tuple[str, str]]:
    """Each framework with each mode."""
    lowerings = []
    for framework in frameworks:
        for mode in modes or first_mode(framework):
            lowerings.append((framework, mode))
    return lowerings


def _layouts(assignments: list[str]) -> list[str]:
    """Of `layout=nhwc` or `layout=nchw,nhwc`."""
    settings = parse_settings(assignments)
    for name in settings:
        if name != "layout":
            raise SteptimeError(
                f"certify takes layout=…, found {name}=…; see --help for its flags."
            )
    layouts = settings.get("layout", "nchw")
    return layouts if isinstance(layouts, list) else [layouts]


def _usual_precisions(device: str, every: bool) -> tuple[str, ...]:
    if not every:
        return ("fp32",)
    return CPU_PRECISIONS if device == "cpu" else CUDA_PRECISIONS


def _network_names(names: list[str], every: bool) -> list[str]:
    from steptime import workloads

    if bool(names) == every:
        raise SteptimeError(
            "Name the networks to certify, or use --all; `steptime list networks` shows them."
        )
    for name in names:
        # Report a misspelt name before anything runs.
        workloads.load(name)
    return workloads.names() if every else names


def _testable_frameworks() -> list[str]:
    from steptime.cli.framework_info import installed_frameworks
    from steptime.run.certify import REFERENCE

    return [name for name in installed_frameworks() if name != REFERENCE]


def first_mode(framework: str) -> list[str]:
    from steptime import plugins
    from steptime.cli.framework_info import modes
    from steptime.core.errors import unknown

    names = plugins.names("frameworks")
    if framework not in names:
        raise unknown("framework", framework, names)
    return modes(framework)[:1] or ["eager"]


def _certify(cases: list[Case], *, again: bool) -> list[Outcome]:
    from steptime.cli.render.watch import CertifyWatch
    from steptime.run.certify import certify
    from steptime.store.folder import FolderStore

    with CertifyWatch() as watch:
        return certify(cases, FolderStore(store_folder()), again=again, watch=watch)


def _certify_side_by_side(networks: list[str], flags: list[str], jobs: int) -> None:
    """Let a process for each network put its certificates into the store.

    If one of them dies, the caller makes what is missing, or says why it cannot."""
    from steptime.cli.render.watch import Progress
    from steptime.run.side_by_side import run_side_by_side

    commands = {}
    for network in networks:
        commands[network] = ["--store", str(store_folder()), "certify", network, *flags]
    with Progress() as progress:

        def show(ended: int, running: list[str]) -> None:
            progress.show(f"{ended} of {len(commands)} networks done, now {', '.join(running)}")

        run_side_by_side(commands, jobs, show)


def _show(outcomes: list[Outcome], *, json: bool, markdown: bool) -> None:
    from steptime.cli.render import certificates as render

    if json:
        output.print_json({"certificates": [render.to_document(o) for o in outcomes]})
    elif markdown:
        render.show_markdown(outcomes)
    else:
        render.show(outcomes)


def _exit(outcomes: list[Outcome]) -> None:
    """A case that a framework cannot run is no failure, unless there is no other case."""
    tested = []
    for outcome in outcomes:
        failure = outcome.attempt.failure
        if failure is None or failure.cause not in UNAVAILABLE:
            tested.append(outcome)
    # Otherwise a missing framework would look like a success.
    if not tested:
        raise typer.Exit(ALL_FAILED)
    exit_if_failed(sum(not outcome.passed for outcome in tested), len(tested))
