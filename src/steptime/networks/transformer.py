"""Networks of attention alone."""

from __future__ import annotations

from steptime.graph import Initializer, Net, Tensor, adam, adamw, network

VOCABULARY = 37_000
WIDTH = 512
INNER = 2048
HEADS = 8
LAYERS = 6
DROPOUT = 0.1
SOURCE = 64
TARGET = 64
NARROW = Initializer("truncated_normal", 0.02)
ZERO = Initializer("constant", 0.0)


def split(net: Net, x: Tensor, count: int) -> list[Tensor]:
    width = x.shape[-1] // count
    return [net.slice(x, index * width, (index + 1) * width) for index in range(count)]


def attend(net: Net, x: Tensor, *, to: Tensor | None = None, causal: bool = False) -> Tensor:
    """Attention of a sequence to itself, or `to` another one, which gives keys and values.

    Projections of the same sequence are one product."""
    if to is None:
        query, keys, values = split(net, net.dense(x, 3 * WIDTH, bias=False), 3)
    else:
        query = net.dense(x, WIDTH, bias=False)
        keys, values = split(net, net.dense(to, 2 * WIDTH, bias=False), 2)
    mixed = net.attention(query, keys, values, heads=HEADS, causal=causal)
    return net.dense(mixed, WIDTH, bias=False)


def add_and_norm(net: Net, x: Tensor, y: Tensor) -> Tensor:
    return net.layer_norm(net.add(x, net.dropout(y, DROPOUT)))


def feed_forward(net: Net, x: Tensor) -> Tensor:
    return add_and_norm(net, x, net.dense(net.relu(net.dense(x, INNER)), WIDTH))


def add_positions(net: Net, embedded: Tensor) -> Tensor:
    scaled = net.scale(embedded, WIDTH**0.5)
    return net.dropout(net.positions(scaled, learned=False), DROPOUT)


# The source followed by the shifted target is one input. Sentences fill their length, so only
# later positions are masked. The rate is the peak of the paper's schedule; label smoothing is
# left out.
@network(
    "transformer-base",
    title="Transformer, base",
    source="Vaswani et al., 2017 (arXiv 1706.03762): 6 + 6 layers of 512, "
    "one table for source, target and output",
    optimizer=adam(7e-4, epsilon=1e-9, betas=(0.9, 0.98)),
    unit="sentences",
)
def transformer_base(net: Net) -> Tensor:
    tokens = net.tokens(SOURCE + TARGET, VOCABULARY)
    initializer = Initializer("truncated_normal", WIDTH**-0.5)
    table = net.embedding(net.slice(tokens, 0, SOURCE), VOCABULARY, WIDTH, initializer=initializer)
    x = add_positions(net, table)
    for _ in range(LAYERS):
        x = feed_forward(net, add_and_norm(net, x, attend(net, x)))
    y = add_positions(net, net.tied_embedding(net.slice(tokens, SOURCE, SOURCE + TARGET), table))
    for _ in range(LAYERS):
        y = add_and_norm(net, y, attend(net, y, causal=True))
        y = feed_forward(net, add_and_norm(net, y, attend(net, y, to=x)))
    return net.tied_dense(y, table)


def narrow(net: Net, x: Tensor, units: int) -> Tensor:
    return net.dense(x, units, initializer=NARROW, bias_initializer=ZERO)


@network(
    "gpt2",
    title="GPT-2, 124 million",
    source="Radford et al., 2019, the smallest of four; trained as in nanoGPT, without dropout",
    optimizer=adamw(6e-4, betas=(0.9, 0.95), weight_decay=0.1),
    unit="tokens",
)
def gpt2(net: Net) -> Tensor:
    length = 1024
    vocabulary = 50_257
    width = 768
    table = net.embedding(net.tokens(length, vocabulary), vocabulary, width, initializer=NARROW)
    x = net.positions(table, initializer=NARROW)
    for _ in range(12):
        query, keys, values = split(net, narrow(net, net.layer_norm(x), 3 * width), 3)
        mixed = net.attention(query, keys, values, heads=12, causal=True)
        x = net.add(x, narrow(net, mixed, width))
        y = net.gelu(narrow(net, net.layer_norm(x), 4 * width), tanh=True)
        x = net.add(x, narrow(net, y, width))
    return net.tied_dense(net.layer_norm(x), table)
