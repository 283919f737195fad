"""The first Inception network."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network

# Filters of: 1×1, 1×1 before the 3×3, 3×3, 1×1 before the 5×5, 5×5, 1×1 after the pool.
Widths = tuple[int, int, int, int, int, int]


def conv(net: Net, x: Tensor, filters: int, kernel: int, stride: int = 1) -> Tensor:
    return net.relu(net.conv(x, filters, kernel, stride=stride, padding=kernel // 2))


def inception(net: Net, x: Tensor, widths: Widths) -> Tensor:
    width_1, before_3, width_3, before_5, width_5, after_pool = widths
    branch_1 = conv(net, x, width_1, 1)
    branch_3 = conv(net, conv(net, x, before_3, 1), width_3, 3)
    branch_5 = conv(net, conv(net, x, before_5, 1), width_5, 5)
    pool = net.max_pool(x, 3, stride=1, padding=1)
    return net.concat(branch_1, branch_3, branch_5, conv(net, pool, after_pool, 1))


STAGES: list[list[Widths]] = [
    [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)],
    [
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ],
    [(256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)],
]


# As in Caffe's bvlc_googlenet, pools round up and the local normalisation has k = 1. The two
# auxiliary classifiers, an aid to training in 2014, are left out. That makes 6,998,552 parameters
# with the biases of every convolution.
@network(
    "googlenet",
    title="GoogLeNet (Inception v1)",
    source="Szegedy et al., 2014 (arXiv 1409.4842), as in Caffe's bvlc_googlenet, "
    "without the auxiliary classifiers",
    optimizer=momentum(0.01, 0.9),
)
def googlenet(net: Net) -> Tensor:
    x = conv(net, net.input(3, 224, 224), 64, 7, 2)
    x = net.lrn(net.max_pool(x, 3, stride=2, ceil=True))
    x = net.lrn(conv(net, conv(net, x, 64, 1), 192, 3))
    for stage in STAGES:
        x = net.max_pool(x, 3, stride=2, ceil=True)
        for widths in stage:
            x = inception(net, x, widths)
    return net.dense(net.dropout(net.global_average_pool(x), 0.4), 1000)
