"""The frame of every command: dataclass fields as absl flags, help, refusals, interrupts.

The only module that knows about flags. No TensorFlow: a wrong flag is answered before it is
imported.
"""

import errno
import gc
import logging
import shlex
import signal
import sys
import textwrap
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import Field, fields, is_dataclass
from functools import partial
from types import FrameType
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from absl import app, flags

from dawnbench_tf.machine import install_command
from dawnbench_tf.refusals import Refusal, one_line, suggestion
from dawnbench_tf.settings import all_settings, flag_name, help_text, setting_fields
from dawnbench_tf.terminal import (
    OF_A_FULL_DISK,
    columns,
    cut,
    exit_with,
    hold_standard_streams,
    is_terminal,
    lead_nowhere,
    say,
    show,
    unwritten,
)

T = TypeVar("T")
_OF_PATHS = (errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)  # whatever is asked
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_UNWIND = 3  # of an interrupted run, at most; saving its clock takes 0.02
_INDENT = 22  # columns before the text of a flag's help


def run(
    main: Callable[[Any, list[str]], int | None],  # of the options, and what is no flag
    options: type[Any],
    *,
    files: bool = False,  # whether the command takes anything that is no flag, such as paths
    # A flag for each setting of this dataclass too, without a default: see `replacements`.
    replaces: type[Any] | None = None,
    common: Callable[[], Collection[str]] = tuple,  # flags that --help shows; (): the options
    tables: Mapping[str, Callable[[], str]] = types.MappingProxyType({}),  # what --FLAG=? prints
    interrupted: str = "",  # said after an interrupt; {command} is the command line
) -> None:
    """Runs a command: its flags are the fields of `options`; exits with what `main` returns."""
    # A Refusal is one line on stderr and exit status 1; SIGINT, SIGTERM and SIGHUP are one line and
    # 128 + the signal's number.
    hold_standard_streams()
    gc.set_threshold(40_000, 20)  # TensorFlow's import and our lists are no garbage: a second less
    with suppress(OSError, AttributeError):  # of a notebook's or another program's stream
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # as stderr
    show()
    if spec := main.__globals__.get("__spec__"):  # messages begin with the command as users know it
        sys.argv[0] = f"dawnbench {spec.name.split('.')[1]}"
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of its cache of fonts
    # Keras warns of callbacks that are slow, as evaluations inside an epoch are.
    logger = logging.getLogger("tensorflow")
    logger.addFilter(lambda record: "is slow compared" not in str(record.msg))
    own = {name: (*row, row[1].default) for name, row in all_settings(options).items()}
    replaced = all_settings(replaces) if replaces else {}
    others = {name: (*row, None) for name, row in replaced.items()}
    for name, (_, item, default) in (own | others).items():
        _define_flag(name, item, default)
    app.define_help_flags()  # of which these become ours
    for flag in ("help", "h", "?", "helpshort", "helpfull"):
        names = None if flag == "helpfull" else (lambda: common() or own)
        flags.DEFINE_flag(_HelpFlag(flag, partial(_help_text, own | others, names)))
    app.run(
        partial(_in_frame, main, options, tables, interrupted),
        flags_parser=partial(parse, files=files),
    )


@contextmanager
def handling_signals(handler: Any) -> Iterator[None]:
    """Gives SIGNALS another handler in the body; those that are ignored, as by nohup, stay so."""
    before = {n: signal.getsignal(n) for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Raises KeyboardInterrupt(number); again later, as TensorFlow's destructors may swallow it."""
    # The same signal is ignored from then on: what is being saved is saved.
    signal.signal(number, signal.SIG_IGN)
    if "tensorflow" in sys.modules:
        signal.signal(signal.SIGALRM, lambda *_: interrupt(number, frame))
        signal.setitimer(signal.ITIMER_REAL, SECONDS_TO_UNWIND)
    raise KeyboardInterrupt(number)


def _in_frame(
    main: Callable[[Any, list[str]], int | None],
    options: type[Any],
    tables: Mapping[str, Callable[[], str]],
    interrupted: str,
    argv: list[str],
) -> int | None:
    """Runs `main`; what it raises for the user becomes one line and an exit status."""
    ours = [n for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN]  # as nohup has it
    for number in ours:
        signal.signal(number, interrupt)
    try:
        for name, table in tables.items():
            if flags.FLAGS[name].value == "?":
                lines = table().splitlines()
                if is_terminal(sys.stdout):
                    lines = [cut(line, columns(sys.stdout)) for line in lines]
                print("\n".join(lines), flush=True)
                return 0
        try:
            status = main(read(options), argv[1:])
        except Exception:  # perhaps TensorFlow's, in place of `interrupt`'s
            if taken := [n for n in ours if signal.getsignal(n) == signal.SIG_IGN]:
                raise KeyboardInterrupt(taken[0]) from None
            raise
        sys.stdout.flush()
        if unwritten:
            raise unwritten[0]
        return status
    except Refusal as refusal:
        exit_with(str(refusal), at_once="tensorflow" in sys.modules)
    except KeyboardInterrupt as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        number, *lines = error.args or (signal.SIGINT,)
        command = shlex.join([*sys.argv[0].split(), *sys.argv[1:]])
        lines = lines or [interrupted.replace("{command}", command)]
        line = "; ".join(filter(None, ["interrupted", *lines]))
        exit_with(line, 128 + number, at_once="tensorflow" in sys.modules)
    except BrokenPipeError:  # of `| head`
        lead_nowhere(sys.stdout)
        raise SystemExit(128 + signal.SIGPIPE) from None
    except ModuleNotFoundError as error:  # the library alone installs less than commands import
        package = str(error.name).partition(".")[0]
        if package == "dawnbench_tf":
            raise
    except OSError as error:
        if error.errno in OF_A_FULL_DISK and not error.filename:
            lead_nowhere(sys.stdout)  # what is left in its buffer
            exit_with(f"stdout can't be written ({error.strerror})")
        if error.errno is None:  # a library's own, as matplotlib's without a folder to cache in
            exit_with(str(error))
        path = error.filename or "the working or the temporary folder"
        if error.errno not in (_OF_PATHS if error.filename else [errno.ENOENT]):
            raise
        exit_with(f"{one_line(path, 100)}: can't be opened ({error.strerror})")
    exit_with(f"{package} is not installed; {install_command('harness')} has all it takes")


def read(cls: type[T]) -> T:
    """Returns an instance of the dataclass with the values of the flags. Raises Refusal."""
    values = flags.FLAGS.flag_values_dict()
    kinds: dict[str, Any] = {item.name: item.type for item in fields(cls)}  # type: ignore[arg-type]
    nested = {name: read(kinds[name]) for name in kinds if is_dataclass(kinds[name])}
    return cls(**nested, **{item.name: values[flag_name(item)] for item in setting_fields(cls)})


def is_given(name: str) -> bool:
    """Whether a flag is on the command line."""
    return bool(flags.FLAGS[name].present)


def replacements(cls: type[Any]) -> dict[str, Any]:
    """Returns the settings of a dataclass and its parts that flags were given for, by flat name."""
    values = flags.FLAGS.flag_values_dict()
    chosen = {name: values[name] for name in all_settings(cls)}
    return {name: value for name, value in chosen.items() if value is not None}


def _define_flag(name: str, item: Field[Any], default: Any) -> None:
    kind: Any = item.type
    if isinstance(kind, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not types.NoneType)
    choices = item.metadata["choices"]
    common = {"help": item.metadata["help"], "module_name": sys.argv[0]}
    if kind is bool:
        flags.DEFINE_bool(name, default, **common)
        return
    serializer: Any = flags.ArgumentSerializer()
    if get_origin(kind) is tuple:
        parser = _NumberParser(get_args(kind)[0], several=True)
        serializer = flags.CsvListSerializer(",")
    elif choices:
        parser = flags.EnumParser(list(choices), case_sensitive=False)
    else:
        parser = flags.ArgumentParser() if kind is str else _NumberParser(kind)
    flags.DEFINE(parser, name, default, serializer=serializer, **common)


def _help_text(settings: dict[str, Any], common: Callable[[], Collection[str]] | None) -> str:
    """Returns the command's docstring and the `common` flags, or all, by group, in 80 columns."""
    names = settings if common is None else common()
    groups: dict[str, list[str]] = {}
    for name, (cls, item, default) in settings.items():
        group = item.metadata["group"] or getattr(cls, "GROUP", "this command")
        lines = groups.setdefault(group, [])
        lines += _help_lines(name, item, default) if name in names else []
    text = (sys.modules["__main__"].__doc__ or "").strip()
    text += "".join(
        "\n".join([f"\n\n{group}:", *lines]) for group, lines in groups.items() if lines
    )
    if left := len(settings) - len(names):
        others = [group for group, lines in groups.items() if not lines]
        line = f"--helpfull has {left} more{', such as ' * bool(others)}{', '.join(others[:5])}."
        text += "\n\n" + textwrap.fill(line, 80)
    return text


def _help_lines(name: str, item: Field[Any], default: Any) -> list[str]:
    """Returns the lines of a flag in the help text: name, help, choices, default."""
    help = help_text(item)
    name = f"  --[no]{name}" if item.type in (bool, bool | None) else f"  --{name}"
    if not isinstance(default, bool) and default not in (None, "", ()):
        help += f" ({default})"
    lines = textwrap.wrap(help, 80 - _INDENT, break_on_hyphens=False)
    if len(name) >= _INDENT - 1:
        lines.insert(0, "")
    starts = [name, *("" for _ in lines[1:])]
    return [f"{start:{_INDENT}}{line}".rstrip() for start, line in zip(starts, lines, strict=True)]


class _HelpFlag(flags.BooleanFlag):
    """Prints a help text and ends the command."""

    def __init__(self, name: str, text: Callable[[], str]) -> None:
        super().__init__(name, False, "show the flags", allow_override=True)
        self._text = text

    def parse(self, argument: Any) -> None:
        if self._parse(argument):
            say(self._text(), sys.stdout)
            raise SystemExit(0)


class _NumberParser(flags.ArgumentParser):
    """Parses a number, or several as "1,91,136" to a tuple.

    absl's own parsers say "could not convert string to float" of another text.
    """

    def __init__(self, number: type, several: bool = False) -> None:
        self.number, self.several = number, several

    def parse(self, argument: Any) -> float | tuple[float, ...]:
        if isinstance(argument, tuple):
            return argument
        try:
            if self.several:
                return tuple(self.number(part) for part in argument.split(",") if part)
            return self.number(argument)
        except ValueError:
            kind = f"{'whole ' * (self.number is int)}number"
            text = f"comma-separated {kind}s" if self.several else f"a {kind}"
            raise ValueError(f"should be {text}") from None

    def flag_type(self) -> str:
        name = self.number.__name__
        return f"comma-separated {name}s" if self.several else name


def parse(argv: list[str], files: bool = False) -> list[str]:
    """Parses flags for absl's `app.run`: a wrong flag is one line on stderr, exit status 1."""
    # What is no flag is wrong too, unless the command takes `files`.
    try:
        rest = flags.FLAGS(argv)
        if rest[1:] and not files:
            raise flags.Error(f"{rest[1]}: not a flag; flags are written --name=value")
    except flags.Error as error:
        text = str(error)
        if isinstance(error, flags.UnrecognizedFlagError):
            # absl suggests flags of its own, and no --noNAME of a bool.
            own = flags.FLAGS.flags_by_module_dict()[sys.argv[0]]
            opposites = [f"no{flag.name}" for flag in own if flag.boolean]
            names = [*(flag.name for flag in own), *opposites, "help"]
            hint = suggestion(error.flagname, names, "")
            hint = hint.replace("did you mean ", ". Did you mean: ").replace("?", " ?")
            text = f"Unknown command line flag '{error.flagname}'{hint}"
        if "('Non-boolean" in text:  # absl prints a tuple
            text = text.partition("('Non-boolean")[0] + "should be true or false"
        exit_with(text)
    except ValueError as error:  # absl's of --noNAME=value; a Refusal by --help
        exit_with(str(error))
    return rest
