"""Small convolutional networks on MNIST and CIFAR-10."""

from __future__ import annotations

from steptime.graph import Initializer, Net, Tensor, adam, network, sgd

NORMAL = Initializer("truncated_normal", 0.1)
TENTH = Initializer("constant", 0.1)


@network(
    "cifar10-cnn",
    title="CIFAR-10 CNN (cnn-cifar10)",
    source="dl-mini-workloads cnn-cifar10-tf2 and -pytorch",
    optimizer=adam(1e-3),
    data="cifar10",
)
def cifar10_cnn(net: Net) -> Tensor:
    x = net.max_pool(net.relu(net.conv(net.input(3, 32, 32), 32, 3)), 2)
    x = net.max_pool(net.relu(net.conv(x, 64, 3)), 2)
    x = net.relu(net.conv(x, 64, 3))
    x = net.relu(net.dense(net.flatten(x), 64))
    return net.dense(x, 10)


@network(
    "deepmnist",
    title="Deep MNIST",
    source="TensorFlow's tutorial for experts (2017), as in the PSC DeepMNIST benchmarks; "
    "dropout 0.5",
    optimizer=adam(1e-4),
    data="mnist",
)
def deepmnist(net: Net) -> Tensor:
    def conv(x: Tensor, filters: int) -> Tensor:
        x = net.conv(x, filters, 5, padding="same", initializer=NORMAL, bias_initializer=TENTH)
        return net.max_pool(net.relu(x), 2)

    x = net.flatten(conv(conv(net.input(1, 28, 28), 32), 64))
    x = net.dropout(net.relu(net.dense(x, 1024, initializer=NORMAL, bias_initializer=TENTH)), 0.5)
    return net.dense(x, 10, initializer=NORMAL, bias_initializer=TENTH)


@network(
    "lenet5",
    title="LeNet-5",
    source="LeCun et al., 1998, with full connections in the second convolution "
    "and plain average pooling",
    optimizer=sgd(0.1),
    data="mnist",
)
def lenet5(net: Net) -> Tensor:
    x = net.average_pool(net.tanh(net.conv(net.input(1, 28, 28), 6, 5, padding=2)), 2)
    x = net.average_pool(net.tanh(net.conv(x, 16, 5)), 2)
    x = net.tanh(net.dense(net.flatten(x), 120))
    return net.dense(net.tanh(net.dense(x, 84)), 10)
