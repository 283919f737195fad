"""Translation with recurrent layers and attention."""

from __future__ import annotations

from steptime.graph import Initializer, Net, Tensor, network, sgd

VOCABULARY = 32_000
WIDTH = 512
# Tokens of a sentence, in each language.
SOURCE = 30
TARGET = 30
TENTH = Initializer("uniform", 0.1)


def recurrent(net: Net, tokens: Tensor) -> Tensor:
    x = net.embedding(tokens, VOCABULARY, WIDTH)
    for _ in range(2):
        x = net.lstm(x, WIDTH, initializer=TENTH)
    return x


# The source followed by the shifted target is one input, so both sides have one vocabulary.
@network(
    "seq2seq-attention",
    title="LSTM translation with attention",
    source="Luong et al., 2015 (arXiv 1508.04025): global dot attention, 2 + 2 layers of 512; "
    "the decoder starts from zeros, input feeding and dropout are left out",
    optimizer=sgd(1.0),
    unit="sentences",
)
def seq2seq_attention(net: Net) -> Tensor:
    tokens = net.tokens(SOURCE + TARGET, VOCABULARY)
    encoded = recurrent(net, net.slice(tokens, 0, SOURCE))
    decoded = recurrent(net, net.slice(tokens, SOURCE, SOURCE + TARGET))
    context = net.attention(decoded, encoded, encoded, heads=1, scale=1.0)
    x = net.concat(context, decoded, axis=-1)
    x = net.tanh(net.dense(x, WIDTH, bias=False, initializer=TENTH))
    return net.dense(x, VOCABULARY, bias=False, initializer=TENTH)
