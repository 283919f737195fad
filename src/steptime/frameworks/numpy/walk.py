"""What a layer's function gets and gives on one walk through the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
Slopes = tuple[list[Array], dict[str, Array]]  # of the inputs (None: has none), of the weights
Back = Callable[[Array], Slopes]


@dataclass
class Walk:
    training: bool
    random: np.random.Generator | None = None  # None: dropout is off
    statistics: dict[str, Array] = field(default_factory=dict)  # new moving averages, by canonical name
