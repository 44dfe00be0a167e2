"""Predicts the scaling efficiency of training on several machines."""

from typing import NamedTuple

__all__ = ["Network", "Efficiency", "predict"]

_BACKWARD = 2 / 3  # of a step: a layer has one product forward and two backward


class Network(NamedTuple):
    """The network between machines: `gbits` Gbit/s in each direction, `replicas` of a machine."""

    gbits: float
    replicas: int = 1


class Efficiency(NamedTuple):
    """Scaling efficiency: throughput of a replica over that of a replica on one machine alone.

    `low`: the machines sum gradients after the backward pass; `high`: during it.
    """

    low: float
    high: float


def predict(
    step_seconds: float, gradient_bytes: float, network: Network, machines: int
) -> Efficiency:
    """Predicts the scaling efficiency of several machines; each replica keeps its batch size.

    The machines sum gradients in a ring at the network's full speed, in which each of m sends
    2 (m - 1) / m times the gradients (Patarasuk and Yuan 2009). Not in it: latency, statistics
    over the global batch, slow machines. Real clusters can be slower than `low`.

    Args:
      step_seconds: duration of a step on one machine.
      gradient_bytes: size of a replica's gradients: in float32, 4 bytes for each parameter.
      network: the network between the machines.
      machines: number of machines.
    """
    sent = 2 * (machines - 1) / machines * gradient_bytes
    exchange = sent * 8 / (network.gbits * 1e9)
    not_hidden = max(0.0, exchange - _BACKWARD * step_seconds)
    low, high = (step_seconds / (step_seconds + extra) for extra in (exchange, not_hidden))
    return Efficiency(low, high)
