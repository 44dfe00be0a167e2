"""What is known of a recipe: entries, what others report, our own runs."""

from typing import NamedTuple


class Published(NamedTuple):
    """A published entry that the recipe reproduces."""

    entry: str  # path in the tree of published entries
    hours: float  # to the threshold
    best: float  # score of its best row
    hardware: str


class Reported(NamedTuple):
    """What others report of the network, or of a recipe like this one: what to expect, no entry."""

    score: float  # of the task's metric
    source: str  # and how it differs


class Measured(NamedTuple):
    """Our own measurement of the recipe: a distribution, not a lucky run."""

    date: str
    machine: str
    runs: int
    reached: int  # runs that reached the threshold
    mean: float  # score of the row that ended the run
    sd: float
    seconds: float | None  # on the clock to the threshold, the median; None: half never reach it
    command: str
