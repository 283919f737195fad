"""Residual networks (He et al., 2015)."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network


def conv_norm(net: Net, x: Tensor, filters: int, kernel: int, stride: int = 1) -> Tensor:
    x = net.conv(x, filters, kernel, stride=stride, padding=kernel // 2, bias=False)
    return net.batch_norm(x)


def bottleneck(net: Net, x: Tensor, width: int, stride: int) -> Tensor:
    """1×1, 3×3, 1×1. Version 1.5: the stride is in the 3×3."""
    y = net.relu(conv_norm(net, x, width, 1))
    y = net.relu(conv_norm(net, y, width, 3, stride))
    y = conv_norm(net, y, 4 * width, 1)
    same = x.shape == y.shape
    shortcut = x if same else conv_norm(net, x, 4 * width, 1, stride)
    return net.relu(net.add(y, shortcut))


@network(
    "resnet50",
    title="ResNet-50 v1.5",
    source="He et al., 2015, with the stride in the 3×3 convolution (torchvision, MLPerf)",
    optimizer=momentum(0.1, 0.9),
)
def resnet50(net: Net) -> Tensor:
    x = net.relu(conv_norm(net, net.input(3, 224, 224), 64, 7, 2))
    x = net.max_pool(x, 3, stride=2, padding=1)
    for width, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for block in range(blocks):
            x = bottleneck(net, x, width, stride if block == 0 else 1)
    return net.dense(net.global_average_pool(x), 1000)
