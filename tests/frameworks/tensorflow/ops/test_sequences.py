from __future__ import annotations

from typing import Any

import numpy as np


def test_lstm_equals_the_plain_formula(lower: Any, work_of: Any) -> None:
    work = work_of("sequence")
    w = {name: array.astype(np.float64) for name, array in work.weights.items()}
    x = w["embedding1.weight"][work.batch["input"]]
    h = c = np.zeros((4, 3))
    outputs = []
    for time in range(5):
        gates = (
            x[:, time] @ w["lstm1.weight_input"].T
            + h @ w["lstm1.weight_hidden"].T
            + w["lstm1.bias"]
        )
        i, f, g, o = np.split(gates, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        outputs.append(h @ w["dense1.weight"].T + w["dense1.bias"])
    output = lower("sequence", precision="fp64").predict(work.batch)
    np.testing.assert_allclose(output, np.stack(outputs, axis=1), rtol=1e-12, atol=1e-12)
