"""A checksum of what was measured, which our entries carry in misc: damage shows, edits too."""

import hashlib
import json
from collections.abc import Sequence

KEY = "measuredSha256"


def of_training(rows: Sequence[Sequence[float]]) -> str:
    """The checksum of a training's rows, values in the order of the data set's columns."""
    return _digest([[float(value) for value in row] for row in rows])


def of_inference(latency: float, score: float) -> str:
    """The checksum of a latency in ms and a score."""
    return _digest([float(latency), float(score)])


def _digest(figures):
    return hashlib.sha256(json.dumps(figures).encode()).hexdigest()
