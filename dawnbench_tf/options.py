"""Where and on what a recipe runs, and who says so: dataclasses that commands make flags of."""

import re
from dataclasses import dataclass
from typing import ClassVar

from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import check, setting

__all__ = ["RunOptions", "Credits"]

ANONYMOUS = "anonymous"
LONGEST = 200  # characters of a text in an entry


@dataclass(frozen=True)
class Credits:
    """Who submits an entry, on which hardware, at what price."""

    GROUP: ClassVar[str] = "output"
    author: str = setting(ANONYMOUS, "author of the entry")
    author_email: str = setting("", "author's e-mail address in the entry")
    hardware: str = setting("", "hardware as the entry states it; default: what is found")
    hardware_tag: str = setting(
        "", "hardware in the entry's file name; default: made from what is found"
    )
    cost_per_hour: float | None = setting(
        None, "on-demand price of the hardware, USD per hour", above=0
    )

    instance: str = setting("", "cloud machine whose price to take, and to name; ? lists them")

    def __post_init__(self):
        check(self)
        if self.author_email and not re.fullmatch(r"[^\s@]+@[^\s@]+", self.author_email):
            refuse("author_email", self.author_email, "should be an address: NAME@HOST")
        for name in ("author", "author_email", "hardware", "hardware_tag"):
            text = getattr(self, name)
            if len(text) > LONGEST or not text.isprintable():
                right = f"should be text on one line, of {LONGEST} characters at most"
                refuse(name, ascii(text)[1:-1], right)


@dataclass(frozen=True)
class RunOptions:
    """Where and on what a recipe runs. None of it moves the accuracy curve; resuming ignores it."""

    GROUP: ClassVar[str] = "where and on what"
    output_dir: str = setting(
        "",
        "folder of the run, or study; an unfinished one goes on. Default: runs/RECIPE-TIME, or "
        "studies/NAME",
        group="output",
    )
    data_dir: str = setting("", "folder of the data set, or its archive")
    download: bool = setting(False, "let TensorFlow Datasets download the data set into --data_dir")
    strategy: str = setting(
        "off",
        "tf.distribute strategy",
        choices=(
            "off",
            "one_device",
            "mirrored",
            "multi_worker_mirrored",
            "parameter_server",
            "tpu",
        ),
    )
    num_gpus: int = setting(-1, "GPUs to use; -1: all there are", low=-1)
    logical_cpus: int = setting(
        0, "split the CPU into so many devices, to try mirrored where no GPU is", low=0
    )
    tpu: str = setting("local", "TPU to use: local, its name, or grpc://HOST:PORT")
    worker_hosts: str = setting(
        "", "host:port of all workers, comma-separated; else TF_CONFIG, else SLURM's variables"
    )
    task_index: int = setting(-1, "which of --worker_hosts this process is, from 0", low=-1)
    data_format: str = setting(
        "NHWC", "layout of images inside the model", choices=("NHWC", "NCHW")
    )
    steps_per_execution: int = setting(
        10, "steps in one call into TensorFlow; evaluations and Ctrl-C wait for its end", low=1
    )
    max_steps: int = setting(
        0,
        "train this number of steps and print their speed; writes no run and no entry, only "
        "trial.json if --output_dir is given; 0: train all",
        low=0,
    )
    peak_tflops: float = setting(
        0.0,
        "what a device can do, in 10^12 floating-point operations a second at the recipe's "
        "precision, for the share that is used; 0: measured, on CPUs and GPUs",
        low=0,
    )
    deterministic: bool = setting(
        False, "ask TensorFlow for deterministic kernels (slower on GPUs)"
    )
    tensorboard: bool = setting(
        False, "write TensorBoard logs to OUTPUT_DIR/tensorboard", group="output"
    )
    profile_steps: tuple[int, ...] = setting(
        (), "FIRST,LAST step to profile, written with TensorBoard's logs", low=1, group="output"
    )
    credits: Credits = Credits()

    def __post_init__(self):
        check(self)
        if self.logical_cpus > 1 and self.strategy != "mirrored":
            refuse("logical_cpus", self.logical_cpus, "should have --strategy=mirrored as well")
        first_last = self.profile_steps
        if first_last and (len(first_last) != 2 or first_last[0] > first_last[1]):
            refuse("profile_steps", first_last, "should be FIRST,LAST")
