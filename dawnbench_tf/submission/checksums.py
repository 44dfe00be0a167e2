"""SHA-256 of an entry's measurements, kept in its misc: reveals later damage or edits."""

import hashlib
import json
from collections.abc import Sequence

KEY = "measuredSha256"


def training_checksum(rows: Sequence[Sequence[float]]) -> str:
    """Returns the checksum of training rows; values in the order of the data set's columns."""
    return _digest([[float(value) for value in row] for row in rows])


def inference_checksum(latency: float, score: float) -> str:
    """Returns the checksum of a latency in milliseconds and a score."""
    return _digest([float(latency), float(score)])


def _digest(figures: list[float] | list[list[float]]) -> str:
    return hashlib.sha256(json.dumps(figures).encode()).hexdigest()
