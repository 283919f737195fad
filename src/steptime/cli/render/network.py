"""A network: its layers, and the totals that follow from them."""

from __future__ import annotations

from typing import Any

from steptime.cli.output import echo, echo_labelled
from steptime.cli.render.table import Column, print_table, quantity

COLUMNS = (
    Column("layer", stays=True),
    # Most layers are named after their op.
    Column("op", drop=3),
    Column("output", drop=1),
    quantity("parameters"),
    quantity("forward FLOPs"),
    quantity("backward FLOPs", drop=2),
)
COUNTS = ("parameters", "forward_flops", "backward_flops")
# Of the totals: the names before the values.
MARGIN = 30
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
    print_table(COLUMNS, rows)
    echo()
    texts = {title: f"{document[name]:,}" for name, title in TOTALS.items()}
    width = max(map(len, texts.values()))
    for title, text in texts.items():
        echo_labelled(title, f"{text:>{width}}", MARGIN)
    echo_labelled("one sample", _units_text(document["units_per_sample"]), MARGIN)
    echo_labelled("optimizer", document["optimizer"], MARGIN)
    echo_labelled("fingerprint", document["fingerprint"], MARGIN)


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
