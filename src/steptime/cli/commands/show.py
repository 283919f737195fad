"""`steptime show NETWORK`: its layers, and what follows from them; or a stored result, or a foreign plan as ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steptime.cli.output import document, say, table
from steptime.cli.request import FOREIGN, dlbs_plan, reading_store, warn_of_problems
from steptime.core.errors import SteptimeError

if TYPE_CHECKING:
    from steptime.graph import Graph, Layer, Network, Optimizer

COLUMNS = ("layer", "op", "output", "parameters", "forward FLOPs", "backward FLOPs")
ID = re.compile(r"[0-9a-f-]{4,}")


def show_command(
    network: Annotated[
        str,
        typer.Argument(
            help="A network's name, or your own FILE.py:NAME; a result's id; a DLBS plan, FILE.json."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Layers, parameters, FLOPs and fingerprint of a network; a stored result; or a plan of HPE DLBS as a TOML plan."""
    if network == "cpu" or network.startswith("cuda"):
        raise SteptimeError(
            f"{network!r} is a device, not a network; `steptime machine` shows devices."
        )
    if network.endswith(".py"):
        raise SteptimeError(f"{network} is a file: name the network in it too, {network}:NAME.")
    if network.endswith(FOREIGN):
        _print_plan(network, json=json)
        return
    if ID.fullmatch(network):
        _print_results(network, json=json)
        return
    from steptime import networks

    found = networks.load(network)
    if json:
        document(describe(found))
    else:
        _print(found)


def _print_plan(name: str, *, json: bool) -> None:
    toml, notes = dlbs_plan(name)
    if json:
        document({"toml": toml, "notes": notes})
    else:
        say(toml.rstrip())


def _print_results(word: str, *, json: bool) -> None:
    from steptime.analysis.certificates import TASK, certificates
    from steptime.cli.render import results
    from steptime.cli.render.stored import named

    store = reading_store()
    try:
        found = named(word, store)
    finally:
        warn_of_problems(store)  # the result that was not found may be one of them
    known = certificates(store.attempts(TASK))
    if json:
        document(results.as_document(found, known))
    else:
        results.show(found, known)


def describe(network: Network) -> dict[str, Any]:
    graph = network.graph
    return {
        "name": network.name,
        "title": network.title,
        "source": network.source,
        "optimizer": _rule(network.optimizer),
        "unit": network.unit,
        "units_per_sample": network.units_per_sample,
        "trainable_parameters": graph.trainable_parameters,
        "stored_parameters": graph.stored_parameters,
        "forward_flops": graph.forward_flops,
        "backward_flops": graph.backward_flops,
        "forward_bytes": graph.forward_bytes(),
        "fingerprint": graph.fingerprint,
        "layers": [_layer(graph, layer) for layer in graph],
    }


def _layer(graph: Graph, layer: Layer) -> dict[str, Any]:
    forward, backward = graph.layer_flops(layer)
    return {
        "name": layer.name,
        "op": layer.op.name,
        "inputs": layer.inputs,
        "shape": layer.shape,
        "parameters": _own_parameters(layer),
        "forward_flops": forward,
        "backward_flops": backward,
    }


def _own_parameters(layer: Layer) -> int:
    """Lent weights stand in their owner's row, so that the column adds up."""
    if layer.op.tied_input is not None:
        return 0
    return sum(weight.size for weight in layer.weights.values() if weight.trainable)


def _print(network: Network) -> None:
    facts = describe(network)
    rows = [
        [
            layer["name"],
            layer["op"],
            " × ".join(map(str, layer["shape"])),
            *(
                f"{layer[name]:,}" if layer[name] else ""
                for name in ("parameters", "forward_flops", "backward_flops")
            ),
        ]
        for layer in facts["layers"]
    ]
    say(f"{facts['title']}: {facts['source']}")
    say()
    table(COLUMNS, rows, right=COLUMNS[3:])
    say()
    totals = {
        "trainable parameters": f"{facts['trainable_parameters']:,}",
        "stored parameters": f"{facts['stored_parameters']:,}",
        "forward FLOPs per sample": f"{facts['forward_flops']:,}",
        "backward FLOPs per sample": f"{facts['backward_flops']:,}",
        "forward bytes, batch 1, fp32": f"{facts['forward_bytes']:,}",
    }
    width = max(map(len, totals.values()))
    for name, value in totals.items():
        say(f"{name:30}{value:>{width}}")
    say(f"{'one sample':30}{_counted(facts['units_per_sample'])}")
    say(f"{'optimizer':30}{facts['optimizer']}")
    say(f"{'fingerprint':30}{facts['fingerprint']}")


def _counted(units: dict[str, int]) -> str:
    words = {
        unit: unit.replace("_", " ").removesuffix("s" if count == 1 else "")
        for unit, count in units.items()
    }
    return ", ".join(f"{count} {words[unit]}" for unit, count in units.items())


def _rule(optimizer: Optimizer) -> str:
    inertia = f", momentum {optimizer.momentum}" if optimizer.algorithm == "momentum" else ""
    how = "decoupled " if optimizer.decoupled else ""
    decay = f", {how}weight decay {optimizer.weight_decay}" if optimizer.weight_decay else ""
    return f"{optimizer.algorithm}, rate {optimizer.rate}{inertia}{decay}"
