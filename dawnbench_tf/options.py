"""Dataclass fields as absl flags, one flag per field: nothing is said twice.

The only module besides the commands that knows about flags. No TensorFlow: a wrong flag is
answered before it is imported.
"""

import signal
import sys
import types
from dataclasses import dataclass, fields, replace
from typing import get_args, get_origin

from absl import app, flags

from dawnbench_tf import models, recipes
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.settings import Refusal, check, refuse, setting


@dataclass(frozen=True)
class RunOptions:
    """Where and on what a recipe runs. None of it moves the accuracy curve; resuming ignores it."""

    output_dir: str = setting(
        "",
        "folder of the run; one with an unfinished run continues it. Default: runs/RECIPE-TIME",
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
    deterministic: bool = setting(
        False, "ask TensorFlow for deterministic kernels (slower on GPUs)"
    )
    tensorboard: bool = setting(False, "write TensorBoard logs to OUTPUT_DIR/tensorboard")
    profile_steps: tuple[int, ...] = setting(
        (), "FIRST,LAST step to profile, written with TensorBoard's logs", low=1
    )
    cost_per_hour: float | None = setting(
        None, "on-demand price of the hardware, USD per hour", low=0
    )
    author: str = setting("anonymous", "author of the entry")
    author_email: str = setting("", "author's e-mail address in the entry")
    hardware: str = setting("", "hardware as the entry states it; default: what is found")
    hardware_tag: str = setting(
        "", "hardware in the entry's file name; default: made from what is found"
    )

    def __post_init__(self):
        check(self)
        first_last = self.profile_steps
        if first_last and (len(first_last) != 2 or first_last[0] > first_last[1]):
            refuse("profile_steps", ",".join(map(str, first_last)), "should be FIRST,LAST")


def define() -> None:
    """Defines --recipe, --list_recipes, and a flag for each field of Recipe and RunOptions."""
    here = sys.argv[0]  # the running command's own, so that --help shows them
    flags.DEFINE_string("recipe", recipes.DEFAULT, "what to train, TASK/NAME", module_name=here)
    flags.DEFINE_bool(
        "list_recipes",
        False,
        "list the recipes and what is known of them, then exit",
        module_name=here,
    )
    for item in _flag_fields(Recipe):
        _define_flag(item, None, f"{item.metadata['help']} (replaces the recipe's)")
    define_for(RunOptions)


def define_for(cls) -> None:
    """Defines a flag for each field of a command's own dataclass."""
    for item in _flag_fields(cls):
        _define_flag(item, item.default, item.metadata["help"])


def read_as(cls):
    """The instance of such a dataclass that the flags name. Raises Refusal."""
    values = flags.FLAGS.flag_values_dict()
    return cls(**{item.name: values[item.name] for item in _flag_fields(cls)})


def _flag_fields(cls):
    return [item for item in fields(cls) if "help" in item.metadata]


def _define_flag(item, default, help):
    kind = item.type
    if isinstance(kind, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not types.NoneType)
    common = {"name": item.name, "default": default, "help": help, "module_name": sys.argv[0]}
    if get_origin(kind) is tuple:
        flags.DEFINE(
            _NumbersParser(get_args(kind)[0]), serializer=flags.CsvListSerializer(","), **common
        )
    elif kind is bool:
        flags.DEFINE_bool(**common)
    elif item.metadata["choices"]:
        flags.DEFINE_enum(enum_values=list(item.metadata["choices"]), **common)
    else:
        parsers = {
            int: flags.IntegerParser,
            float: flags.FloatParser,
            str: flags.ArgumentParser,
        }
        flags.DEFINE(parsers[kind](), serializer=flags.ArgumentSerializer(), **common)


class _NumbersParser(flags.ArgumentParser):
    """Parses "1,91,136" to a tuple of numbers."""

    def __init__(self, number):
        self.number = number

    def parse(self, argument):
        if isinstance(argument, tuple):
            return argument
        try:
            return tuple(self.number(part) for part in argument.split(",") if part)
        except ValueError:
            raise ValueError("should be comma-separated numbers") from None

    def flag_type(self):
        return f"comma-separated {self.number.__name__}s"


def parse(argv: list[str], files: bool = False) -> list[str]:
    """absl's flags parser for `app.run`: a wrong flag is one line on stderr, exit status 1.

    What is no flag is wrong too, unless the command takes `files`.
    """
    app.define_help_flags()
    try:
        rest = flags.FLAGS(argv)
        if rest[1:] and not files:
            raise flags.Error(f"{rest[1]}: not a flag; flags are written --name=value")
    except flags.Error as error:
        exit_with(" ".join(str(error).split()))
    return rest


def read() -> tuple[Recipe, RunOptions]:
    """The recipe and the run that the flags name. Raises Refusal."""
    values = flags.FLAGS.flag_values_dict()
    chosen = {item.name: values[item.name] for item in _flag_fields(Recipe)}
    recipe = recipes.get(values["recipe"])
    recipe = replace(recipe, **{name: value for name, value in chosen.items() if value is not None})
    try:
        models.get(recipe.model)
    except ValueError as error:
        raise Refusal(f"--model={recipe.model}: {error}") from None
    return recipe, read_as(RunOptions)


def end_quietly() -> None:
    """Lets Ctrl-C, and a reader that has seen enough, end a command without a traceback."""
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def exit_with(line: str, status: int = 1):
    """Prints one line on stderr, in place of the progress line if one is alive there, and exits."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}{sys.argv[0].rsplit('/', 1)[-1]}: {line}", file=sys.stderr)
    raise SystemExit(status)
