"""The words of a question, told to OpenAPI from the catalogue."""

from __future__ import annotations

from typing import Any

from steptime.index.catalogue import DIMENSIONS, METRICS, Dimension
from steptime.index.query import CHOICES, MOMENT

_MOMENT = {"type": "string", "pattern": f"^{MOMENT.pattern}$"}


def _parameter(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}


def _one_of(words: Any) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _several(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def _parameters() -> list[dict[str, Any]]:
    axes = [
        _parameter(
            "y",
            _one_of([*METRICS, "efficiency"]),
            "The metric; efficiency is that of scaling over devices.",
        ),
        _parameter("x", _one_of([*DIMENSIONS, *METRICS]), "A dimension or a metric."),
        _parameter(
            "by", _several(_one_of(DIMENSIONS)), "One colour, then one shape, for each value."
        ),
        _parameter("split", _one_of(DIMENSIONS), "One small chart for each value."),
        *(
            _parameter(name, _one_of(words), f"Default: {words[0] or 'none'}.")
            for name, words in CHOICES.items()
        ),
        _parameter("batch", {"type": "string", "pattern": "^[0-9]+$"}, "Goes with scaling."),
        _parameter(
            "rel",
            {"type": "string"},
            "DIMENSION:VALUE, or :fewest, that every value is divided by.",
        ),
        _parameter("since", _MOMENT, "A day, or the beginning of an ISO 8601 moment."),
        _parameter("until", _MOMENT, "The same."),
        _parameter("s", _several({"type": "string"}), "A named series: NAME|dimension=value&…"),
    ]
    filters = [
        _parameter(name, _several({"type": "string"}), _filter(known))
        for name, known in DIMENSIONS.items()
    ]
    return [*axes, *filters]


def _filter(known: Dimension) -> str:
    return f"{known.label}{': a number or low..high' * known.number}. {known.help}".strip()


UNKNOWN = {
    "422": {"description": "A word that nothing answers to; the answer names the known ones."}
}
QUESTION: dict[str, Any] = {"parameters": _parameters(), "responses": UNKNOWN}
"""What every address that takes a question says of itself."""
