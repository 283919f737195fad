"""The AlexNet family. At least nine different networks carry that name: each has its own here."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network, sgd


@network(
    "alexnet-owt",
    title="AlexNet, one weird trick",
    source="Krizhevsky, 2014 (arXiv 1404.5997), as in convnet-benchmarks and torchvision, "
    "with dropout",
    optimizer=momentum(0.01, 0.9),
)
def alexnet_owt(net: Net) -> Tensor:
    x = net.relu(net.conv(net.input(3, 224, 224), 64, 11, stride=4, padding=2))
    x = net.relu(net.conv(net.max_pool(x, 3, stride=2), 192, 5, padding=2))
    x = net.max_pool(x, 3, stride=2)
    for filters in (384, 256, 256):
        x = net.relu(net.conv(x, filters, 3, padding=1))
    x = net.flatten(net.max_pool(x, 3, stride=2))
    for _ in range(2):
        x = net.relu(net.dense(net.dropout(x, 0.5), 4096))
    return net.dense(x, 1000)


@network(
    "alexnet-tfcnn",
    title="AlexNet of tf_cnn_benchmarks",
    source="tensorflow/benchmarks, tf_cnn_benchmarks: 227×227 without padding, "
    "384 filters in the fourth convolution",
    optimizer=sgd(0.005),
)
def alexnet_tfcnn(net: Net) -> Tensor:
    x = net.relu(net.conv(net.input(3, 227, 227), 64, 11, stride=4))
    x = net.relu(net.conv(net.max_pool(x, 3, stride=2), 192, 5, padding="same"))
    x = net.max_pool(x, 3, stride=2)
    for filters in (384, 384, 256):
        x = net.relu(net.conv(x, filters, 3, padding="same"))
    x = net.flatten(net.max_pool(x, 3, stride=2))
    for _ in range(2):
        x = net.dropout(net.relu(net.dense(x, 4096)), 0.5)
    return net.dense(x, 1000)
