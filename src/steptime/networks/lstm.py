"""Language models with long short-term memory."""

from __future__ import annotations

from steptime.graph import Initial, Net, Tensor, network, sgd

VOCABULARY, TENTH = 10_000, Initial("uniform", 0.1)


# The authors sum the loss over the 20 steps, clip the gradient and carry the state from batch to batch; here the loss
# is the mean, nothing is clipped and every sequence starts anew: the same network and work, another training recipe.
@network(
    "ptb-lstm-small",
    title="Penn Treebank LSTM, small",
    source="Zaremba et al., 2014 (arXiv 1409.2329): 2 layers of 200, 20 steps, no dropout",
    optimizer=sgd(1.0),
    unit="tokens",
)
def ptb_lstm_small(net: Net) -> Tensor:
    x = net.embedding(net.tokens(20, VOCABULARY), VOCABULARY, 200)
    for _ in range(2):
        x = net.lstm(x, 200, initial=TENTH)
    return net.dense(x, VOCABULARY, initial=TENTH, initial_bias=TENTH)
