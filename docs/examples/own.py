from steptime.graph import network


@network("tiny", title="A tiny classifier", source="this file")
def tiny(net):
    return net.dense(net.relu(net.dense(net.input(784), 32)), 10)
