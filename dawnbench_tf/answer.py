"""Ask a trained reader a question about a text.

    python -m dawnbench_tf.answer --model=RUN_DIR --context_file=FILE --question="Who ...?"

Exit status: 0, or 1 for bad input.
"""

import os
import sys
from pathlib import Path

from absl import app, flags, logging

from dawnbench_tf import options
from dawnbench_tf.settings import Refusal, refuse


def define() -> None:
    """Defines the command's flags."""
    for name, help_text in (
        ("model", "--output_dir of a run of a reading task, e.g. qa_mini/bidaf"),
        ("context_file", "text file, UTF-8, with the passage to answer from; - reads stdin"),
        ("question", "what to ask"),
    ):
        flags.DEFINE_string(name, "", help_text, module_name=sys.argv[0])
    flags.DEFINE_integer(
        "most_words", None, "words of the answer, at most", lower_bound=1, module_name=sys.argv[0]
    )


def main(_):
    values = flags.FLAGS
    try:
        for name in ("model", "context_file", "question"):
            if not values[name].value.strip():
                refuse(name, "", "is needed; --help shows how")
        passage = _read(values.context_file)
        print(show(passage, ask(Path(values.model), passage, values.question, values.most_words)))
    except Refusal as refusal:
        options.exit_with(str(refusal))


def ask(folder: Path, passage: str, question: str, most_words: int | None = None):
    """The answer of the reader in `folder`, a `reader.Answer`. Raises Refusal."""
    if not folder.is_dir():
        refuse("model", folder, "is no folder; should be the --output_dir of a training run")
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # as training has it
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from dawnbench_tf.reader import Reader

    logging.set_verbosity(logging.WARNING)
    return Reader(folder)(passage, question, most_words)


def show(passage: str, answer) -> str:
    """The answer with its probability, and the passage with it marked."""
    left, right = ("\x1b[1;7m", "\x1b[0m") if sys.stdout.isatty() else (">>>", "<<<")
    marked = f"{passage[: answer.begin]}{left}{answer.text}{right}{passage[answer.end :]}"
    return f"{answer.text}\nprobability {answer.probability:.3f}\n\n{marked.strip()}"


def _read(name):
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        refuse("context_file", name, f"can't be read ({error.strerror})")
    except UnicodeDecodeError:
        refuse("context_file", name, "is not UTF-8 text")


if __name__ == "__main__":
    define()
    app.run(main, flags_parser=options.parse)
