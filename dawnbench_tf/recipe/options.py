"""Options of a run: devices, data directory, output, price, author. Commands make flags of them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, documented, flat, replaced, setting

__all__ = ["RunOptions", "Credits"]

ANONYMOUS = "anonymous"
LONGEST = 200  # characters of a text in an entry
# Options of one process or one call: a run's folder does not record them.
OF_A_CALL = ("output_dir", "max_steps", "worker_hosts", "task_index", "profile_steps")


@documented
@dataclass(frozen=True)
class Credits:
    """Author, hardware and price that an entry states."""

    GROUP: ClassVar[str] = "output"
    author: str = setting(ANONYMOUS, "author that the entry names")
    author_email: str = setting("", "author's e-mail address in the entry")
    hardware: str = setting(
        "", "hardware that the entry names; default: detected, e.g. 2 CPU AMD EPYC / 24 GB"
    )
    hardware_tag: str = setting(
        "", "hardware in the entry's file name; default: from the detected hardware"
    )
    cost_per_hour: float | None = setting(
        None, "on-demand price of all the hardware, USD per hour", above=0, high=1e9
    )
    instance: str = setting(
        "", "cloud instance type; sets --cost_per_hour and --hardware; ? lists the known ones"
    )

    def __post_init__(self) -> None:
        check(self)
        if self.author_email and not re.fullmatch(r"[^\s@]+@[^\s@]+", self.author_email):
            refuse("author_email", self.author_email, "should be an address: NAME@HOST")
        for name in ("author", "author_email", "hardware", "hardware_tag"):
            text = getattr(self, name)
            empty = not text and name == "author"
            if empty or len(text) > LONGEST or not text.isprintable() or text != text.strip():
                expected = f"should be text on one line, no spaces around, {LONGEST} characters"
                refuse(name, ascii(text)[1:-1], f"{expected} at most")


@documented
@dataclass(frozen=True)
class RunOptions:
    """Where a recipe is trained: devices, data directory, output folder.

    None of these options changes the accuracy curve, so a run may go on with others.

    Attributes:
      credits: author, hardware and price that the entry states.
    """

    GROUP: ClassVar[str] = "where and on what"
    output_dir: str = setting(
        "",
        "folder of the run or study; an unfinished one goes on; default: runs/RECIPE-TIME, "
        "studies/NAME",
        group="output",
    )
    data_dir: str = setting("", "folder or archive of the data set, if not embedded")
    download: bool = setting(False, "let TensorFlow Datasets download into --data_dir")
    strategy: str = setting(
        "off",
        "tf.distribute strategy; off: none",
        choices=("off", "one_device", "mirrored", "multi_worker_mirrored", "tpu"),
    )
    num_gpus: int = setting(-1, "GPUs to use; -1: all there are", low=-1)
    logical_cpus: int = setting(
        0,
        "number of logical devices to split the CPU into, to try --strategy=mirrored on it; GPUs "
        "are hidden then",
    )
    tpu: str = setting("local", "TPU to use: local, its name, or grpc://HOST:PORT")
    worker_hosts: str = setting(
        "",
        "host:port of every worker, comma-separated; default: from TF_CONFIG or SLURM's variables",
    )
    task_index: int = setting(
        -1, "index of this process in --worker_hosts, from 0; -1: from TF_CONFIG or SLURM", low=-1
    )
    data_format: str = setting(
        "NHWC",
        "layout of image tensors inside the model; GPUs often prefer NCHW",
        choices=("NHWC", "NCHW"),
    )
    steps_per_execution: int = setting(
        10,
        "most training steps in one call into TensorFlow, which ends early for an evaluation; more "
        "cost less overhead, but Ctrl-C waits for the call to end",
        low=1,
    )
    jit_compile: bool | None = setting(
        None,
        "compile the training step with XLA: fuses operations, for GPUs; slower on CPUs, whose "
        "convolutions oneDNN runs; refused on TPUs, where XLA always compiles; images of several "
        "sizes compile once for each, texts of several --bucket_boundaries once for each pair of "
        "lengths of passage and question; default: on one GPU, where it is expected to save more "
        "than it compiles",
    )
    max_steps: int = setting(
        0,
        "train this number of steps and print their speed; writes no run and no entry, only "
        "trial.json if --output_dir is given; 0: train all",
    )
    peak_tflops: float = setting(
        0.0,
        "peak of one device (of a TPU v2 or v3: of a core) in 10^12 floating-point operations a "
        "second at the recipe's precision, to state the share that is used; 0: measured, on CPUs "
        "and GPUs",
    )
    deterministic: bool = setting(
        False, "ask TensorFlow for deterministic kernels (slower on GPUs)"
    )
    tensorboard: bool = setting(
        False, "write TensorBoard logs to OUTPUT_DIR/tensorboard", group="output"
    )
    profile_steps: tuple[int, ...] = setting(
        (),
        "FIRST,LAST step to profile, in whole calls into TensorFlow but the first: prints a table "
        "of the costliest operations, and writes the profile to OUTPUT_DIR/tensorboard",
        low=1,
        group="output",
    )
    credits: Credits = Credits()

    def __post_init__(self) -> None:
        check(self)
        if self.logical_cpus > 1 and self.strategy != "mirrored":
            refuse("logical_cpus", self.logical_cpus, "should have --strategy=mirrored as well")
        first_last = self.profile_steps
        if first_last and (len(first_last) != 2 or first_last[0] > first_last[1]):
            refuse("profile_steps", first_last, "should be FIRST,LAST")


def to_record(options: RunOptions) -> dict[str, Any]:
    """Returns the options that a run's folder records, as JSON values by flat name."""
    # They are those that differ from their defaults, without `OF_A_CALL`. A local `data_dir` is
    # absolute.
    defaults = {**flat(RunOptions()), **flat(Credits())}
    values = {**flat(options), **flat(options.credits)}
    if options.data_dir and "://" not in options.data_dir:
        values["data_dir"] = os.path.abspath(os.path.expanduser(options.data_dir))
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value != defaults[name] and name not in OF_A_CALL
    }


def with_recorded(options: RunOptions, values: Mapping[str, Any]) -> RunOptions:
    """Returns options with what `to_record` gave. Raises Refusal; TypeError: another name."""
    own = {*flat(options), *flat(options.credits)}.difference(OF_A_CALL)
    for name in values:
        if name not in own:
            raise TypeError(f"{name}: no option of a run")
    return replaced(options, values, credits=replaced(options.credits, values))
