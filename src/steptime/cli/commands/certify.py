"""`steptime certify`: proves, item by item, that frameworks compute the network."""

from __future__ import annotations

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
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    json: Json = False,
) -> None:
    """Prove that frameworks compute the same network.

    Compares outputs, loss, every gradient, an optimizer step, 20 losses and dropout with a float64
    reference. Each must lie within a bound that follows from the precision."""
    from steptime.cli.render import certificates as render

    arguments = networks or []
    names = _network_names([text for text in arguments if "=" not in text], all_)
    layouts = _layouts([text for text in arguments if "=" in text])
    precisions = tuple(precision or ())
    if not precisions:
        precisions = _usual_precisions(device) if all_ else ("fp32",)
    lowerings = _lowerings(framework or _testable_frameworks(), mode or [])
    cases = []
    for network, (name, chosen), bits, layout in product(names, lowerings, precisions, layouts):
        case = Case(workload=network, precision=bits, layout=layout, device=device)
        cases.append(replace(case, framework=name, mode=chosen))
    outcomes = _certify(cases, again=again)
    if json:
        output.print_json({"certificates": [render.to_document(o) for o in outcomes]})
    elif markdown:
        render.show_markdown(outcomes)
    else:
        render.show(outcomes)
    _exit(outcomes)


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


def _usual_precisions(device: str) -> tuple[str, ...]:
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
