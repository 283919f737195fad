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


def basic(net: Net, x: Tensor, width: int, stride: int) -> Tensor:
    """Two 3×3."""
    y = conv_norm(net, net.relu(conv_norm(net, x, width, 3, stride)), width, 3)
    shortcut = x if x.shape == y.shape else conv_norm(net, x, width, 1, stride)
    return net.relu(net.add(y, shortcut))


def basic_without_weights(net: Net, x: Tensor, width: int, stride: int) -> Tensor:
    """Option A: if the shape changes, the shortcut takes every second cell and pads with zeros."""
    y = conv_norm(net, net.relu(conv_norm(net, x, width, 3, stride)), width, 3)
    if x.shape != y.shape:
        missing = (width - x.shape[0]) // 2
        # A pool of one cell with a stride picks every second cell.
        x = net.average_pool(x, 1, stride=stride)
        x = net.pad_channels(x, missing, missing)
    return net.relu(net.add(y, x))


@network(
    "resnet18",
    title="ResNet-18",
    source="He et al., 2015 (arXiv 1512.03385), as in torchvision",
    optimizer=momentum(0.1, 0.9, weight_decay=1e-4),
)
def resnet18(net: Net) -> Tensor:
    x = net.relu(conv_norm(net, net.input(3, 224, 224), 64, 7, 2))
    x = net.max_pool(x, 3, stride=2, padding=1)
    for width, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        x = basic(net, basic(net, x, width, stride), width, 1)
    return net.dense(net.global_average_pool(x), 1000)


@network(
    "resnet56-cifar",
    title="ResNet-56 for CIFAR-10",
    source="He et al., 2015 (arXiv 1512.03385), section 4.2, "
    "with shortcuts of option A padded on both sides",
    optimizer=momentum(0.1, 0.9, weight_decay=1e-4),
    data="cifar10",
)
def resnet56_cifar(net: Net) -> Tensor:
    x = net.relu(conv_norm(net, net.input(3, 32, 32), 16, 3))
    for width, stride in [(16, 1), (32, 2), (64, 2)]:
        for block in range(9):
            x = basic_without_weights(net, x, width, stride if block == 0 else 1)
    return net.dense(net.global_average_pool(x), 10)


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
