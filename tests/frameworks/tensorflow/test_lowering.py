from __future__ import annotations

from typing import Any

import pytest

from steptime.core.errors import Unsupported
from steptime.graph import Net
from steptime.graph.op import Op
from steptime.graph.ops import OPS


def test_lower_graph_names_an_op_without_lowering() -> None:
    from steptime.frameworks.tensorflow.lowering import lower_graph

    class Strange(Op):
        pass

    net = Net("one")
    with pytest.raises(Unsupported, match=r"one.*'strange'.*'here'"):
        lower_graph(net.graph(net.layer(Strange(), net.input(3), name="here")))


def test_ops_cover_every_op_of_the_graph() -> None:
    from steptime.frameworks.tensorflow import ops

    assert ops.OPS.keys() == OPS.keys() - {"input"}


def test_embedding_has_a_gradient_of_the_used_rows_only(lower: Any, tensorflow: Any) -> None:
    steps = lower("sequence", precision="bf16", mode="eager").steps
    table = steps.variables["embedding1.weight"]
    with tensorflow.GradientTape() as tape:
        loss, _ = steps._loss(
            tensorflow.zeros((4, 5), "int32"), tensorflow.zeros((4, 5), "int32"), None
        )
    assert isinstance(tape.gradient(loss, table), tensorflow.IndexedSlices)
