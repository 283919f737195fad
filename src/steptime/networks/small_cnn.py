"""Small convolutional networks on MNIST and CIFAR-10."""

from steptime.graph import Net, Tensor, adam, network


@network(
    "cifar10-cnn",
    title="CIFAR-10 CNN (cnn-cifar10)",
    source="dl-mini-workloads cnn-cifar10-tf2 and -pytorch",
    optimizer=adam(1e-3),
)
def cifar10_cnn(net: Net) -> Tensor:
    x = net.max_pool(net.relu(net.conv(net.input(3, 32, 32), 32, 3)), 2)
    x = net.max_pool(net.relu(net.conv(x, 64, 3)), 2)
    x = net.relu(net.conv(x, 64, 3))
    x = net.relu(net.dense(net.flatten(x), 64))
    return net.dense(x, 10)
