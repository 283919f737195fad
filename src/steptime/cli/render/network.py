"""A network: its layers, and the totals that follow from them."""

from __future__ import annotations

from typing import Any

from steptime.cli.output import echo, print_table

COLUMNS = ("layer", "op", "output", "parameters", "forward FLOPs", "backward FLOPs")
COUNTS = ("parameters", "forward_flops", "backward_flops")
TOTALS = {
    "trainable_parameters": "trainable parameters",
    "stored_parameters": "stored parameters",
    "forward_flops": "forward FLOPs per sample",
    "backward_flops": "backward FLOPs per sample",
    "forward_bytes": "forward bytes, batch 1, fp32",
}


def show(document: dict[str, Any]) -> None:
    echo(f"{document['title']}: {document['source']}")
    echo()
    rows = []
    for layer in document["layers"]:
        shape = " × ".join(map(str, layer["shape"]))
        counts = [f"{layer[name]:,}" if layer[name] else "" for name in COUNTS]
        rows.append([layer["name"], layer["op"], shape, *counts])
    print_table(COLUMNS, rows, right=COLUMNS[3:])
    echo()
    texts = {title: f"{document[name]:,}" for name, title in TOTALS.items()}
    width = max(map(len, texts.values()))
    for title, text in texts.items():
        echo(f"{title:30}{text:>{width}}")
    echo(f"{'one sample':30}{_units_text(document['units_per_sample'])}")
    echo(f"{'optimizer':30}{document['optimizer']}")
    echo(f"{'fingerprint':30}{document['fingerprint']}")


def _units_text(units: dict[str, int]) -> str:
    """`1 sentence, 4 source tokens`."""
    texts = []
    for unit, count in units.items():
        noun = unit.replace("_", " ")
        # Units are named in the plural.
        if count == 1:
            noun = noun.removesuffix("s")
        texts.append(f"{count} {noun}")
    return ", ".join(texts)
