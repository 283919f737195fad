"""The third Inception network: convolutions factorised into smaller ones."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network

Kernel = int | tuple[int, int]


def conv(
    net: Net, x: Tensor, filters: int, *kernels: Kernel, stride: int = 1, same: bool = True
) -> Tensor:
    """Convolutions in sequence, each with batch norm and relu. Not `same`: no padding."""
    for kernel in kernels:
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (height // 2, width // 2) if same else 0
        y = net.conv(x, filters, (height, width), stride=stride, padding=padding, bias=False)
        x = net.relu(net.batch_norm(y, epsilon=1e-3))
    return x


def halve(net: Net, x: Tensor, filters: int) -> Tensor:
    return conv(net, x, filters, 3, stride=2, same=False)


def pool_branch(net: Net, x: Tensor, filters: int) -> Tensor:
    return conv(net, net.average_pool(x, 3, stride=1, padding=1), filters, 1)


def small(net: Net, x: Tensor, after_pool: int) -> Tensor:
    """Two 3×3 in place of a 5×5 (figure 5 of the paper)."""
    return net.concat(
        conv(net, x, 64, 1),
        conv(net, conv(net, x, 48, 1), 64, 5),
        conv(net, conv(net, x, 64, 1), 96, 3, 3),
        pool_branch(net, x, after_pool),
    )


def split(net: Net, x: Tensor, width: int) -> Tensor:
    """1×7 and 7×1 in place of a 7×7 (figure 6)."""
    y = conv(net, conv(net, x, width, 1, (1, 7)), 192, (7, 1))
    z = conv(net, conv(net, x, width, 1, (7, 1), (1, 7), (7, 1)), 192, (1, 7))
    return net.concat(conv(net, x, 192, 1), y, z, pool_branch(net, x, 192))


def wide(net: Net, x: Tensor) -> Tensor:
    """1×3 beside 3×1 (figure 7)."""

    def both(y: Tensor) -> list[Tensor]:
        return [conv(net, y, 384, (1, 3)), conv(net, y, 384, (3, 1))]

    branch_1 = conv(net, x, 320, 1)
    branches_3 = both(conv(net, x, 384, 1))
    branches_5 = both(conv(net, conv(net, x, 448, 1), 384, 3))
    return net.concat(branch_1, *branches_3, *branches_5, pool_branch(net, x, 192))


# As in TensorFlow's slim, average pools leave padding out of their means; torchvision's count it.
@network(
    "inception-v3",
    title="Inception v3",
    source="Szegedy et al., 2015 (arXiv 1512.00567), as in torchvision, "
    "without the auxiliary classifier; the momentum of the paper's earlier models, "
    "not the RMSProp of its best",
    optimizer=momentum(0.045, 0.9),
)
def inception_v3(net: Net) -> Tensor:
    x = conv(net, halve(net, net.input(3, 299, 299), 32), 32, 3, same=False)
    x = net.max_pool(conv(net, x, 64, 3), 3, stride=2)
    x = net.max_pool(conv(net, conv(net, x, 80, 1), 192, 3, same=False), 3, stride=2)
    for after_pool in (32, 64, 64):
        x = small(net, x, after_pool)
    deep = halve(net, conv(net, conv(net, x, 64, 1), 96, 3), 96)
    x = net.concat(halve(net, x, 384), deep, net.max_pool(x, 3, stride=2))
    for width in (128, 160, 160, 192):
        x = split(net, x, width)
    deep = halve(net, conv(net, x, 192, 1, (1, 7), (7, 1)), 192)
    x = net.concat(halve(net, conv(net, x, 192, 1), 320), deep, net.max_pool(x, 3, stride=2))
    for _ in range(2):
        x = wide(net, x)
    return net.dense(net.dropout(net.global_average_pool(x), 0.5), 1000)
