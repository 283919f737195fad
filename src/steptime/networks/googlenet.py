"""The first Inception network."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network

Widths = tuple[
    int, int, int, int, int, int
]  # 1×1, 3×3 reduced, 3×3, 5×5 reduced, 5×5, behind the pool


def conv(net: Net, x: Tensor, filters: int, kernel: int, stride: int = 1) -> Tensor:
    return net.relu(net.conv(x, filters, kernel, stride=stride, padding=kernel // 2))


def inception(net: Net, x: Tensor, widths: Widths) -> Tensor:
    one, before_three, three, before_five, five, behind_pool = widths
    return net.concat(
        conv(net, x, one, 1),
        conv(net, conv(net, x, before_three, 1), three, 3),
        conv(net, conv(net, x, before_five, 1), five, 5),
        conv(net, net.max_pool(x, 3, stride=1, padding=1), behind_pool, 1),
    )


STAGES: list[list[Widths]] = [
    [(64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)],
    [
        (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128),
    ],
    [(256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)],
]  # fmt: skip


# As in Caffe's bvlc_googlenet, pools round up and the local normalisation has k = 1; the two auxiliary classifiers, a
# means of training in 2014, are left out: 6,998,552 parameters, the biases of every convolution among them.
@network(
    "googlenet",
    title="GoogLeNet (Inception v1)",
    source="Szegedy et al., 2014 (arXiv 1409.4842), as in Caffe's bvlc_googlenet, without the auxiliary classifiers",
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
