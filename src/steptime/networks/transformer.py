"""Networks of attention alone."""

from __future__ import annotations

from steptime.graph import Initial, Net, Tensor, adam, adamw, network

VOCABULARY, WIDTH, INNER, HEADS, LAYERS, DROPOUT = 37_000, 512, 2048, 8, 6, 0.1
SOURCE, TARGET = 64, 64
NARROW, ZERO = Initial("truncated_normal", 0.02), Initial("constant", 0.0)


def cut(net: Net, x: Tensor, parts: int) -> list[Tensor]:
    width = x.shape[-1] // parts
    return [net.slice(x, part * width, (part + 1) * width) for part in range(parts)]


def attend(net: Net, x: Tensor, *, to: Tensor | None = None, causal: bool = False) -> Tensor:
    """Projections of the same sequence are one product. To another sequence: its keys and values."""
    if to is None:
        query, keys, values = cut(net, net.dense(x, 3 * WIDTH, bias=False), 3)
    else:
        query, (keys, values) = (
            net.dense(x, WIDTH, bias=False),
            cut(net, net.dense(to, 2 * WIDTH, bias=False), 2),
        )
    return net.dense(
        net.attention(query, keys, values, heads=HEADS, causal=causal), WIDTH, bias=False
    )


def joined(net: Net, x: Tensor, y: Tensor) -> Tensor:
    return net.layer_norm(net.add(x, net.dropout(y, DROPOUT)))


def fed_forward(net: Net, x: Tensor) -> Tensor:
    return joined(net, x, net.dense(net.relu(net.dense(x, INNER)), WIDTH))


def placed(net: Net, embedded: Tensor) -> Tensor:
    return net.dropout(net.positions(net.scale(embedded, WIDTH**0.5), learned=False), DROPOUT)


# The source and, behind it, the shifted target are one input. Sentences fill their length, so nothing is masked but
# what lies ahead. The rate is the peak of the paper's schedule; label smoothing is left out.
@network(
    "transformer-base",
    title="Transformer, base",
    source="Vaswani et al., 2017 (arXiv 1706.03762): 6 + 6 layers of 512, one table for source, target and output",
    optimizer=adam(7e-4, epsilon=1e-9, betas=(0.9, 0.98)),
    unit="sentences",
)
def transformer_base(net: Net) -> Tensor:
    tokens = net.tokens(SOURCE + TARGET, VOCABULARY)
    law = Initial("truncated_normal", WIDTH**-0.5)
    table = net.embedding(net.slice(tokens, 0, SOURCE), VOCABULARY, WIDTH, initial=law)
    x = placed(net, table)
    for _ in range(LAYERS):
        x = fed_forward(net, joined(net, x, attend(net, x)))
    y = placed(net, net.tied_embedding(net.slice(tokens, SOURCE, SOURCE + TARGET), table))
    for _ in range(LAYERS):
        y = joined(net, y, attend(net, y, causal=True))
        y = fed_forward(net, joined(net, y, attend(net, y, to=x)))
    return net.tied_dense(y, table)


def narrow(net: Net, x: Tensor, units: int) -> Tensor:
    return net.dense(x, units, initial=NARROW, initial_bias=ZERO)


@network(
    "gpt2",
    title="GPT-2, 124 million",
    source="Radford et al., 2019, the smallest of four; trained as in nanoGPT, without dropout",
    optimizer=adamw(6e-4, betas=(0.9, 0.95), weight_decay=0.1),
    unit="tokens",
)
def gpt2(net: Net) -> Tensor:
    length, vocabulary, width = 1024, 50_257, 768
    table = net.embedding(net.tokens(length, vocabulary), vocabulary, width, initial=NARROW)
    x = net.positions(table, initial=NARROW)
    for _ in range(12):
        query, keys, values = cut(net, narrow(net, net.layer_norm(x), 3 * width), 3)
        x = net.add(
            x, narrow(net, net.attention(query, keys, values, heads=12, causal=True), width)
        )
        y = net.gelu(narrow(net, net.layer_norm(x), 4 * width), tanh=True)
        x = net.add(x, narrow(net, y, width))
    return net.tied_dense(net.layer_norm(x), table)
