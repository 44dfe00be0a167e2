"""Operations of a training step. This module does not import TensorFlow."""

# Operations of a step over those of the forward pass, by MLPerf's convention: forward, gradients of
# the layers' inputs, gradients of the weights. The images get no gradient, so a step really does
# 0.1 to 2 % less (2.935 to 2.999), and airbench94's 4 % less where whitening's bias is frozen.
STEP_TO_FORWARD = 3


def trained_share(hardest: int, batch_size: int) -> float:
    """Returns the share of a batch that is trained on.

    Args:
      hardest: a recipe's `hardest`; 0: all examples are trained on.
      batch_size: examples of the batch.
    """
    return min(hardest or batch_size, batch_size) / batch_size


def step_flops(forward: float, proxy: float = 0, share: float = 1, every: int = 1) -> int:
    """Returns the operations of a training step for each example of its batch.

    Args:
      forward: operations of the model's forward pass for one example.
      proxy: the same of the network that selects examples; 0: none does.
      share: share of the batch that is trained on.
      every: steps from one training step of the proxy to the next.
    """
    selection = proxy + proxy * (STEP_TO_FORWARD - 1) / every
    return round(forward * STEP_TO_FORWARD * share + selection)
