"""Predicts the scaling efficiency of training on several machines."""

from typing import NamedTuple

__all__ = ["Network", "Efficiency", "predict"]

_BACKWARD = 2 / 3  # of a step: a layer has one product forward and two backward


class Network(NamedTuple):
    """The network between machines.

    Attributes:
      gbits: speed between two machines in Gbit/s, in each direction.
      replicas: number of replicas on each machine.
    """

    gbits: float
    replicas: int = 1


class Efficiency(NamedTuple):
    """Scaling efficiency: throughput of a machine among several over that of one alone.

    Attributes:
      low: replicas sum gradients in one ring, after the backward pass.
      high: machines sum gradients in a ring, during the backward pass.
    """

    low: float
    high: float


def predict(
    step_seconds: float, gradient_bytes: float, network: Network, machines: int
) -> Efficiency:
    """Predicts the scaling efficiency of several machines; each replica keeps its batch size.

    In a ring of n, each sends 2 (n - 1) / n times the gradients (Patarasuk and Yuan 2009), here at
    the network's full speed. The prediction leaves out losses within a machine, latency,
    statistics over the global batch and slow machines. Real clusters can be slower than `low`.

    Args:
      step_seconds: duration of a step on one machine with all its replicas.
      gradient_bytes: size of a replica's gradients: in float32, 4 bytes for each parameter.
      network: the network between the machines.
      machines: number of machines.

    Raises:
      ValueError: a number is out of range.
    """
    if step_seconds <= 0 or network.gbits <= 0 or min(machines, network.replicas) < 1:
        raise ValueError("durations, speeds and counts should be positive")
    seconds = gradient_bytes * 8 / (network.gbits * 1e9)  # to send the gradients once
    flat, hierarchical = (
        2 * (count - 1) / count * seconds * (machines > 1)
        for count in (machines * network.replicas, machines)
    )
    not_hidden = max(0.0, hierarchical - _BACKWARD * step_seconds)
    low, high = (step_seconds / (step_seconds + extra) for extra in (flat, not_hidden))
    return Efficiency(low, high)
