"""Language models with long short-term memory."""

from __future__ import annotations

from steptime.graph import Initializer, Net, Tensor, network, sgd

VOCABULARY = 10_000
TENTH = Initializer("uniform", 0.1)


def lstm_with_dropout(net: Net, *, width: int, dropout: float, scale: float) -> Tensor:
    """Dropout between layers only, never from one step to the next."""
    initializer = Initializer("uniform", scale)
    x = net.embedding(net.tokens(35, VOCABULARY), VOCABULARY, width, initializer=initializer)
    for _ in range(2):
        x = net.lstm(net.dropout(x, dropout), width, initializer=initializer)
    return net.dense(
        net.dropout(x, dropout), VOCABULARY, initializer=initializer, bias_initializer=initializer
    )


# The authors sum the loss over the steps, clip the gradient and carry the state from batch to
# batch. Here the loss is the mean, nothing is clipped and every sequence starts from zeros: the
# same network and work, another training recipe.
@network(
    "ptb-lstm-small",
    title="Penn Treebank LSTM, small",
    source="Zaremba et al., 2014 (arXiv 1409.2329): 2 layers of 200, 20 steps, no dropout",
    optimizer=sgd(1.0),
    unit="tokens",
    # Penn Treebank itself is not free.
    data="wikitext2",
)
def ptb_lstm_small(net: Net) -> Tensor:
    x = net.embedding(net.tokens(20, VOCABULARY), VOCABULARY, 200)
    for _ in range(2):
        x = net.lstm(x, 200, initializer=TENTH)
    return net.dense(x, VOCABULARY, initializer=TENTH, bias_initializer=TENTH)


@network(
    "ptb-lstm-medium",
    title="Penn Treebank LSTM, medium",
    source="Zaremba et al., 2014 (arXiv 1409.2329): 2 layers of 650, 35 steps, dropout 0.5",
    optimizer=sgd(1.0),
    unit="tokens",
    data="wikitext2",
)
def ptb_lstm_medium(net: Net) -> Tensor:
    return lstm_with_dropout(net, width=650, dropout=0.5, scale=0.05)


@network(
    "ptb-lstm-large",
    title="Penn Treebank LSTM, large",
    source="Zaremba et al., 2014 (arXiv 1409.2329): 2 layers of 1500, 35 steps, dropout 0.65",
    optimizer=sgd(1.0),
    unit="tokens",
    data="wikitext2",
)
def ptb_lstm_large(net: Net) -> Tensor:
    return lstm_with_dropout(net, width=1500, dropout=0.65, scale=0.04)
