from __future__ import annotations

from typing import Any

import numpy as np


def test_multiply_rows_equals_a_product_over_the_last_axis(tensorflow: Any) -> None:
    from steptime.frameworks.tensorflow.ops.products import multiply_rows

    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    weight = np.ones((4, 5))
    rows = multiply_rows(tensorflow.constant(x), weight)
    np.testing.assert_allclose(rows, x @ weight)
    transposed = multiply_rows(tensorflow.constant(x), weight.T, transpose=True)
    np.testing.assert_allclose(transposed, x @ weight)
