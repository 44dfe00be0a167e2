"""The command `dawnbench`, which runs all others: `dawnbench train ...`."""

import runpy
import sys
from pathlib import Path

import dawnbench_tf
from dawnbench_tf.refusals import suggestion
from dawnbench_tf.terminal import exit_with, hold_standard_streams, say, show

HERE = Path(__file__).parent


def main() -> None:
    """Runs the command that the first argument names. Exit status: the command's."""
    hold_standard_streams()
    show()
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h", "--helpshort", "help"):
        lines = [f"  {command:12} {purpose}" for command, purpose in commands().items()]
        last = "\ndawnbench COMMAND --help, dawnbench --version"
        say("\n".join(["dawnbench COMMAND ...\n", *lines, last]), sys.stdout)
    elif name == "--version":
        say(f"dawnbench_tf {dawnbench_tf.__version__}", sys.stdout)
    elif name in (names := commands()):
        sys.argv[1:] = arguments
        try:
            runpy.run_module(f"dawnbench_tf.{name}", run_name="__main__", alter_sys=True)
        except KeyboardInterrupt:  # in its imports: `flags.run` handles it from then on
            sys.argv[0] = f"dawnbench {name}"
            exit_with("interrupted", 130)
    else:
        sys.argv[0] = "dawnbench"
        exit_with(f"{name}: no such command; {suggestion(name, names)}")


def commands() -> dict[str, str]:
    """Returns the purpose of each command, by name: the first line of its module's docstring."""
    files = {path.stem: path for path in HERE.glob("[a-z]*.py")}
    files |= {path.parent.name: path for path in HERE.glob("[a-z]*/__main__.py")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return {
        name: text.partition("\n")[0].strip('"')
        for name, text in sorted(texts.items())
        if '\nif __name__ == "__main__":\n' in text
    }


if __name__ == "__main__":
    main()
