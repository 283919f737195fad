from __future__ import annotations

from typing import Any


def test_convolutions_are_named_by_the_library_that_computes_them(lower: Any, torch: Any) -> None:
    program = lower("residual", phase="inference")
    program.step()
    found = program.kernels()
    convolutions = {name: count for name, count in found.items() if "conv" in name}
    assert sum(convolutions.values()) == 2 and "aten::conv2d" not in found
    if torch.backends.mkldnn.is_available():
        assert convolutions == {"aten::mkldnn_convolution": 2}


def test_a_step_of_training_names_its_way_back_and_its_update(lower: Any) -> None:
    program = lower("transformer")
    program.step()
    found = program.kernels()
    assert found["aten::_fused_sgd_"] == 1 and any("backward" in name for name in found)
    assert not {"aten::empty", "aten::view", "aten::linear"} & set(found)


def test_a_profiler_that_fails_leaves_nothing_behind() -> None:
    from steptime.frameworks.pytorch.kernels import kernels_of

    def broken() -> None:
        raise RuntimeError("no permission")

    assert kernels_of(broken, lambda: None, cuda=False) == {}


def test_only_the_costliest_are_told() -> None:
    from steptime.frameworks.pytorch.kernels import MOST, _costliest

    found = _costliest(
        [(f"routine{place}", float(place)) for place in range(MOST + 5)] + [("routine44", 1.0)]
    )
    assert len(found) == MOST and next(iter(found.items())) == ("routine44", 2)
