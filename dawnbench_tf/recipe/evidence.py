"""Evidence for a recipe: published entries, results reported elsewhere, our own measurements."""

from typing import NamedTuple

from dawnbench_tf import published


class Published(NamedTuple):
    """A published DAWNBench entry whose training the recipe reproduces."""

    entry: str  # its path below the folder of published entries, without suffix
    note: str = ""  # what differs in this entry from the others of the recipe

    @property
    def hours(self) -> float:
        """Training time to the threshold, as published, in hours."""
        return float(published.rows()[self.entry]["hours"])

    @property
    def score(self) -> float:
        """Score of the first row at the threshold, in the metric's unit."""
        return float(published.rows()[self.entry]["score"])

    @property
    def hardware(self) -> str:
        """The hardware, as published."""
        return published.rows()[self.entry]["hardware"]


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
    note: str = ""  # what a reader of the figures has to know
