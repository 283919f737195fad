"""The plain deep networks of the Visual Geometry Group."""

from __future__ import annotations

from steptime.graph import Net, Tensor, momentum, network


@network(
    "vgg16",
    title="VGG-16",
    source="Simonyan and Zisserman, 2014 (arXiv 1409.1556), configuration D",
    optimizer=momentum(0.01, 0.9, weight_decay=5e-4),
)
def vgg16(net: Net) -> Tensor:
    x = net.input(3, 224, 224)
    for filters, convolutions in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(convolutions):
            x = net.relu(net.conv(x, filters, 3, padding=1))
        x = net.max_pool(x, 2)
    x = net.flatten(x)
    for _ in range(2):
        x = net.dropout(net.relu(net.dense(x, 4096)), 0.5)
    return net.dense(x, 1000)
