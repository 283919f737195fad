"""Networks as one writes them by hand for PyTorch: nested modules.

Weights are defined in the same order as in our graphs. Nothing of our lowering is used."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

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
    if name in MODELS:
        network: nn.Module = MODELS[name]()
        return network
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


def attend(query: Any, keys: Any, values: Any, heads: int, *, causal: bool) -> Any:
    """Of tensors (batch, time, features)."""
    by_head = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (query, keys, values))
    mixed = scaled_dot_product_attention(*by_head, is_causal=causal)
    return mixed.transpose(1, 2).flatten(2)


class Gpt2Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        query, keys, values = self.projections(self.norm1(x)).chunk(3, -1)
        x = x + self.output(attend(query, keys, values, self.heads, causal=True))
        return x + self.outer(gelu(self.inner(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, width: int = 768, layers: int = 12, length: int = 1024) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50_257, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Gpt2Block(width, width // 64) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        y = self.tokens(x) + self.positions.weight
        return nn.functional.linear(self.norm(self.blocks(y)), self.tokens.weight)


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        return self.norm(x + self.dropout(self.outer(torch.relu(self.inner(x)))))


class SelfAttention(nn.Module):
    def __init__(self, width: int, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.projections = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        query, keys, values = self.projections(x).chunk(3, -1)
        mixed = attend(query, keys, values, 8, causal=self.causal)
        return self.norm(x + self.dropout(self.output(mixed)))


class CrossAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.projections = nn.Linear(width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Any, source: Any) -> Any:
        keys, values = self.projections(source).chunk(2, -1)
        mixed = attend(self.query(x), keys, values, 8, causal=False)
        return self.norm(x + self.dropout(self.output(mixed)))


class Encoder(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.positions = nn.Buffer(torch.zeros(64, width))
        self.dropout = nn.Dropout(0.1)
        blocks: list[nn.Module] = []
        for _ in range(layers):
            blocks += [SelfAttention(width, causal=False), FeedForward(width)]
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Any) -> Any:
        return self.blocks(self.dropout(x + self.positions))


class DecoderBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, causal=True)
        self.cross = CrossAttention(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x: Any, source: Any) -> Any:
        return self.feed_forward(self.cross(self.attention(x), source))


class Decoder(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.positions = nn.Buffer(torch.zeros(64, width))
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList([DecoderBlock(width) for _ in range(layers)])

    def forward(self, x: Any, source: Any) -> Any:
        x = self.dropout(x + self.positions)
        for block in self.blocks:
            x = block(x, source)
        return x


class TransformerBase(nn.Module):
    """The input is the source, 64 tokens, followed by the target."""

    def __init__(self, width: int = 512, layers: int = 6) -> None:
        super().__init__()
        self.table = nn.Embedding(37_000, width)
        self.encoder = Encoder(width, layers)
        self.decoder = Decoder(width, layers)

    def forward(self, tokens: Any) -> Any:
        scale = math.sqrt(self.table.embedding_dim)
        source = self.encoder(self.table(tokens[:, :64]) * scale)
        target = self.decoder(self.table(tokens[:, 64:]) * scale, source)
        return nn.functional.linear(target, self.table.weight)


class PtbLstm(nn.Module):
    """Both layers are one call of cuDNN."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10_000, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, 10_000)

    def forward(self, tokens: Any) -> Any:
        outputs, _ = self.lstm(self.dropout(self.embedding(tokens)))
        return self.head(self.dropout(outputs))


MODELS: dict[str, Any] = {
    "cifar10-cnn": Cifar10Cnn,
    "gpt2": Gpt2,
    "mnist-mlp": MnistMlp,
    "ptb-lstm-small": lambda: PtbLstm(200, 0.0),
    "ptb-lstm-medium": lambda: PtbLstm(650, 0.5),
    "transformer-base": TransformerBase,
}
