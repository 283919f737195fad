"""The routines that a step runs."""

from __future__ import annotations

from typing import Any


def test_kernels_name_the_library_of_convolutions(lower: Any, torch: Any) -> None:
    program = lower("residual", phase="inference")
    program.step()
    kernels = program.kernels()
    convolutions = {name: count for name, count in kernels.items() if "conv" in name}
    assert sum(convolutions.values()) == 2 and "aten::conv2d" not in kernels
    if torch.backends.mkldnn.is_available():
        assert convolutions == {"aten::mkldnn_convolution": 2}


def test_kernels_include_backward_pass_and_update(lower: Any) -> None:
    program = lower("transformer")
    program.step()
    kernels = program.kernels()
    assert kernels["aten::_fused_sgd_"] == 1 and any("backward" in name for name in kernels)
    assert not {"aten::empty", "aten::view", "aten::linear"} & set(kernels)


def test_kernels_of_is_empty_if_the_profiler_fails() -> None:
    from steptime.frameworks.pytorch.kernels import kernels_of

    def broken() -> None:
        raise RuntimeError("no permission")

    assert kernels_of(broken, lambda: None, cuda=False) == {}


def test_costliest_sorts_by_total_time_up_to_the_limit() -> None:
    from steptime.frameworks.pytorch.kernels import LIMIT, _costliest

    times = [(f"routine{index}", float(index)) for index in range(LIMIT + 5)]
    counts = _costliest([*times, ("routine44", 1.0)])
    assert len(counts) == LIMIT and next(iter(counts.items())) == ("routine44", 2)
