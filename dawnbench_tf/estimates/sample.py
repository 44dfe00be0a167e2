"""The timed part of an estimate: start-up, steps and one evaluation of a recipe. No TensorFlow."""

from typing import Any, NamedTuple

from dawnbench_tf import typed

Lap = tuple[float, int]  # seconds and number of steps of a call into TensorFlow


class Phase(NamedTuple):
    """Timed steps of a part of training that has one size of images and one batch size.

    Attributes:
      side: height and width of the training images, pixels; 0 for questions.
      batch_size: examples in a step.
      steps_per_epoch: number of steps in an epoch.
      begin, end: the epochs of the recipe that it stands for.
      laps: of calls into TensorFlow, without the process's first, which compiles.
      flops_per_example: operations of forward and backward pass; None: unknown.
    """

    side: int
    batch_size: int
    steps_per_epoch: int
    begin: float
    end: float
    laps: list[Lap]
    flops_per_example: float | None

    @property
    def examples_per_epoch(self) -> int:
        """Number of examples in an epoch's steps."""
        return self.steps_per_epoch * self.batch_size

    @property
    def seconds_per_epoch(self) -> float:
        """Mean seconds of an epoch's steps."""
        return self.steps_per_epoch * self.seconds_per_step

    @property
    def seconds_per_step(self) -> float:
        """Mean over the steps: a sum of steps, unlike a median, is this times their number."""
        return sum(seconds for seconds, _ in self.laps) / sum(steps for _, steps in self.laps)


class Sample(NamedTuple):
    """Measurements of a short training without its rows, checkpoints and evaluations.

    Attributes:
      start: seconds by part of the clock up to the end of the first call: import, build, load,
        compile, train (Keras's preparation of `fit`).
      first_steps: number of steps of the first call, which compiles.
      generated: whether the examples were generated in place of the data set; `start["load"]` is
        then the time to generate them.
      phases: timed steps; a phase for each size of training images and batches.
      peak_flops: peak of all devices in operations a second; None: unknown.
      peak_from: source of the peak.
      process_gib, device_gib: peak memory in GiB, of the process and of the fullest GPU.
      input_wait: share of the steps' time that they waited for batches; None: unknown.
      evaluation_seconds: of one evaluation on the whole test set; None: not timed.
      first_evaluation_seconds: of compiling the evaluation; None: not timed.
      hardware: the machine in one line.
      software: versions.
    """

    start: dict[str, float]
    first_steps: int
    generated: bool
    phases: list[Phase]
    peak_flops: float | None
    peak_from: str
    process_gib: float
    device_gib: float | None
    input_wait: float | None
    evaluation_seconds: float | None
    first_evaluation_seconds: float | None
    hardware: str
    software: dict[str, str]

    def facts(self) -> dict[str, Any]:
        """Returns the sample as JSON values."""
        return {**self._asdict(), "phases": [phase._asdict() for phase in self.phases]}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "Sample":
        """Inverse of `facts()`. Raises ValueError."""
        typed.check_fields(facts, cls, "sample")
        phases = [
            Phase(**{**phase, "laps": [tuple(lap) for lap in phase["laps"]]})
            for phase in facts["phases"]
        ]
        return cls(**{**facts, "phases": phases})
