"""The parameters of a query as OpenAPI describes them, made from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steptime.index.catalogue import DIMENSIONS, METRICS, Dimension
from steptime.index.query import CHOICES, MOMENT

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_MOMENT: Schema = {"type": "string", "pattern": f"^{MOMENT.pattern}$"}
# Text, because a query is a URL; the pattern keeps it a whole number.
_WHOLE_NUMBER: Schema = {"type": "string", "pattern": "^[0-9]+$"}


def _parameter(name: str, schema: Schema, text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}


def _one_of(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


def _several(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _make_parameters() -> list[dict[str, Any]]:
    parameters = [
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
    ]
    for name, choices in CHOICES.items():
        default = choices[0] or "none"
        parameters.append(_parameter(name, _one_of(choices), f"Default: {default}."))
    parameters += [
        _parameter("batch", _WHOLE_NUMBER, "Goes with scaling."),
        _parameter("rel", _TEXT, "DIMENSION:VALUE, or :fewest, that every value is divided by."),
        _parameter("since", _MOMENT, "A day, or the beginning of an ISO 8601 moment."),
        _parameter("until", _MOMENT, "A day, or the beginning of an ISO 8601 moment."),
        _parameter("s", _several(_TEXT), "A named series: NAME|dimension=value&…"),
    ]
    for dimension in DIMENSIONS.values():
        text = _describe_filter(dimension)
        parameters.append(_parameter(dimension.name, _several(_TEXT), text))
    return parameters


def _describe_filter(dimension: Dimension) -> str:
    values = ": a number or low..high" if dimension.number else ""
    return f"{dimension.label}{values}. {dimension.help}".strip()


UNKNOWN_NAME = {"422": {"description": "An unknown name; the response lists the known ones."}}
# What OpenAPI says of every route that takes a query.
QUERY_PARAMETERS: dict[str, Any] = {"parameters": _make_parameters(), "responses": UNKNOWN_NAME}
