"""Networks as one writes them by hand for PyTorch: nested modules.

Weights are defined in the same order as in our graphs. Nothing of our lowering is used."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import nn

# (width, blocks, stride of the first block)
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def source(reference: str | None) -> str:
    """Where ResNet-50 comes from: torchvision if it is installed, or a copy in this file (own)."""
    has_torchvision = importlib.util.find_spec("torchvision") is not None
    if reference == "own" or (reference is None and not has_torchvision):
        return "own"
    import torchvision

    return f"torchvision {torchvision.__version__}"


def model(name: str, reference: str | None = None) -> nn.Module:
    if name == "cifar10-cnn":
        return Cifar10Cnn()
    if name == "mnist-mlp":
        return MnistMlp()
    if source(reference) == "own":
        return Resnet50()
    import torchvision

    return torchvision.models.resnet50(weights=None)


class MnistMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(784, 128)
        self.dropout = nn.Dropout(0.2)
        self.output = nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        return self.output(self.dropout(torch.relu(self.hidden(torch.flatten(x, 1)))))


class Cifar10Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.hidden = nn.Linear(1024, 64)
        self.output = nn.Linear(64, 10)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = torch.flatten(self.relu(self.conv3(x)), 1)
        return self.output(self.relu(self.hidden(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels != 4 * width:
            conv = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(4 * width))

    def forward(self, x: Any) -> Any:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return self.relu(y)


class Resnet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        blocks = []
        channels = 64
        for width, count, stride in STAGES:
            for block in range(count):
                blocks.append(Bottleneck(channels, width, stride if block == 0 else 1))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.norm1(self.conv1(x))))
        return self.fc(torch.flatten(self.pool(self.blocks(x)), 1))
