"""Evidence for a recipe: published entries, results reported elsewhere, our own measurements."""

from typing import NamedTuple


class Published(NamedTuple):
    """A published DAWNBench entry whose training the recipe reproduces."""

    entry: str  # path of its JSON file below the folder of published entries
    hours: float  # training time to the threshold, as published
    best: float  # highest score of its rows, in the metric's unit
    hardware: str


class Reported(NamedTuple):
    """A score that a paper or library reports for this network or a similar recipe; no entry."""

    score: float  # the task's metric
    source: str  # where it is reported, and how that training differs


class Measured(NamedTuple):
    """Our own measurement of the recipe over several runs, misses included."""

    date: str  # YYYY-MM-DD
    machine: str  # processor or GPU, load, TensorFlow's version
    runs: int
    reached: int  # number of runs that reached the threshold
    mean: float  # mean of the runs' last scores
    sd: float  # standard deviation of the runs' last scores
    seconds: float | None  # median time to the threshold on the clock; None: half never reach it
    command: str  # repeats the measurement
    # Epoch of the row that reached the threshold, for each run that did, in the order of the seeds;
    # a run that missed has none. () if they were not recorded.
    epochs: tuple[float, ...] = ()
