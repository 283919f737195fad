"""What a network is, without any framework.

Shapes never include the batch. Images are (channels, height, width), sequences are
(time, features). Only initial weights need NumPy, so `steptime list` and `steptime show`
run without it."""

from steptime.graph.graph import Graph
from steptime.graph.layer import Layer
from steptime.graph.net import Net, Tensor
from steptime.graph.network import Network, network
from steptime.graph.op import Initializer
from steptime.graph.optimizer import Optimizer, adam, adamw, momentum, sgd
from steptime.graph.work import Work

__all__ = [
    "Graph",
    "Initializer",
    "Layer",
    "Net",
    "Network",
    "Optimizer",
    "Tensor",
    "Work",
    "adam",
    "adamw",
    "momentum",
    "network",
    "sgd",
]
