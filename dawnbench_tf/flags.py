"""Dataclass fields as absl flags, one flag per field: nothing is said twice.

The only module that knows about flags. No TensorFlow: a wrong flag is answered before it is
imported.
"""

import errno
import logging
import sys
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar, get_args, get_origin

from absl import app, flags

from dawnbench_tf.refusals import one_line
from dawnbench_tf.settings import setting_fields
from dawnbench_tf.terminal import exit_with, hold_standard_streams, lead_nowhere

T = TypeVar("T")
_OF_PATHS = (errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)  # whatever is asked


def run(
    main: Callable[[list[str]], int | None],
    options: type[Any],
    *,
    files: bool = False,
    replaces: type[Any] | None = None,
) -> None:
    """Runs a command: its flags are the fields of `options`; exits with what `main` returns.

    Args:
      main: takes what is no flag on the command line.
      options: dataclass of the command's options.
      files: whether the command takes anything that is no flag, such as paths.
      replaces: a dataclass, for each setting of which there is a flag too, without a default:
        `replacements` tells which were given.
    """
    hold_standard_streams()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of its cache of fonts
    define(options)
    for item in setting_fields(replaces) if replaces else ():
        _define_flag(item, None, f"{item.metadata['help']} (replaces the recipe's)")
    app.run(partial(_with_packages, main), flags_parser=partial(parse, files=files))


def _with_packages(main, argv):
    """Runs `main`: a package that is not installed, or a path that no file can have, is one line.

    The library alone installs less than the commands import.
    """
    try:
        return main(argv[1:])
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "dawnbench_tf":
            raise
    except OSError as error:
        if error.errno not in _OF_PATHS or not error.filename:
            raise
        exit_with(f"{one_line(error.filename, 100)}: can't be opened ({error.strerror})")
    exit_with(f'{package} is not installed; pip install "dawnbench_tf[harness]" has all it takes')


def define(cls: type[Any]) -> None:
    """Defines a flag for each field of a dataclass of options, and of dataclasses within it."""
    for item in _nested(cls):
        define(item.type)
    for item in setting_fields(cls):
        _define_flag(item, item.default, item.metadata["help"])


def read(cls: type[T]) -> T:
    """The instance of such a dataclass that the flags name. Raises Refusal."""
    values = flags.FLAGS.flag_values_dict()
    nested = {item.name: read(item.type) for item in _nested(cls)}
    return cls(**nested, **{item.name: values[item.name] for item in setting_fields(cls)})


def is_given(name: str) -> bool:
    """Whether a flag is on the command line, with whichever value."""
    return bool(flags.FLAGS[name].present)


def replacements(cls: type[Any]) -> dict[str, Any]:
    """The settings of a dataclass that flags were given for, by name."""
    values = flags.FLAGS.flag_values_dict()
    chosen = {item.name: values[item.name] for item in setting_fields(cls)}
    return {name: value for name, value in chosen.items() if value is not None}


def _nested(cls):
    """The fields of a dataclass that are dataclasses of options themselves."""
    return [item for item in fields(cls) if is_dataclass(item.type)]


def _define_flag(item, default, help):
    kind = item.type
    if isinstance(kind, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not types.NoneType)
    # The module is the running command's own, so that --help shows the flag.
    common = {"name": item.name, "default": default, "help": help, "module_name": sys.argv[0]}
    if get_origin(kind) is tuple:
        flags.DEFINE(
            _NumbersParser(get_args(kind)[0]), serializer=flags.CsvListSerializer(","), **common
        )
    elif kind is bool:
        flags.DEFINE_bool(**common)
    elif item.metadata["choices"]:
        choices = list(item.metadata["choices"])
        flags.DEFINE_enum(enum_values=choices, case_sensitive=False, **common)
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
        rest = _parsed(argv)
        if rest[1:] and not files:
            raise flags.Error(f"{rest[1]}: not a flag; flags are written --name=value")
    except flags.Error as error:
        exit_with(str(error))
    return rest


def _parsed(argv):
    """What absl parses; asked for help, which it ends with status 1, the command ends with 0."""
    try:
        try:
            return flags.FLAGS(argv)
        except SystemExit:
            sys.stdout.flush()  # else it fails when Python ends, where nothing catches it
    except BrokenPipeError:  # of `--help | head`
        lead_nowhere(sys.stdout)
    raise SystemExit(0)
