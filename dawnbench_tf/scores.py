"""How good the outputs are: NumPy in, `{column: value}` out, every example counted.

Used alike by training's callback and by inference, whatever ran the model.
"""

import numpy as np


def top1(outputs: np.ndarray, references: np.ndarray) -> dict[str, float]:
    """Top-1 accuracy in percent.

    Args:
      outputs: logits or probabilities, (examples, classes).
      references: true classes, (examples,).

    Raises:
      ValueError: there is not one output for each example.

    >>> top1(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    {'top1Accuracy': 50.0}
    """
    if len(outputs) != len(references):
        raise ValueError(
            f"each of {len(references)} examples should be scored once. "
            f"Received: {len(outputs)} outputs"
        )
    right = int(np.sum(np.argmax(outputs, axis=1) == references))
    return {"top1Accuracy": 100 * right / len(references)}


SCORES = {"top1": top1}
