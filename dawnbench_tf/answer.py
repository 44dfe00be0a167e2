"""Asks a trained reading model a question about a text.

    dawnbench answer --model=RUN_DIR --context_file=FILE --question="Who ...?"

Exit status: 0, or 1 for bad input.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dawnbench_tf import flags, tensorflow_env
from dawnbench_tf.refusals import refuse, shown
from dawnbench_tf.settings import check, setting

if TYPE_CHECKING:
    from dawnbench_tf.inference.reader import Answer

__all__ = ["ask"]


LONGEST = 500_000  # characters of a context, at most: models step through it token by token


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench answer`: the trained model, the passage and the question."""

    model: str = setting("", "--output_dir of a run on a reading task, e.g. qa_mini/bidaf")
    context_file: str = setting(
        "", "text file (UTF-8) with the passage to answer from; - reads stdin"
    )
    question: str = setting("", "the question")
    most_words: int | None = setting(
        None, "maximum length of the answer in words; default: the recipe's limit, if any", low=1
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("model", "context_file", "question"):
            if not getattr(self, name).strip():
                refuse(name, "", "is required; --help shows how")


def main(options: Options, _: list[str]) -> None:
    context = _read(options.context_file)
    answer = ask(Path(options.model), context, options.question, options.most_words)
    print(show(context, answer))


def ask(
    folder: str | os.PathLike[str], context: str, question: str, most_words: int | None = None
) -> "Answer":
    """Returns the answer of a trained reading model.

    Loads the model at each call; `inference.reader.Reader` keeps it for several questions.

    Args:
      folder: `--output_dir` of the training run.
      context: the text to answer from.
      question: the question.
      most_words: maximum length of the answer in words; None for the recipe's limit, if any.

    Returns:
      An `Answer`: `text`, which is context[begin:end], `begin`, `end` (characters), `probability`.

    Raises:
      Refusal: the folder holds no run of a reading task or is damaged, or a text holds no word.
    """
    folder = Path(folder)
    if not folder.is_dir():
        refuse("model", folder, "is no folder; should be the --output_dir of a training run")
    with tensorflow_env.importing():
        from dawnbench_tf.inference.reader import Reader
    return Reader(folder)(context, question, most_words)


def show(context: str, answer: "Answer") -> str:
    """Formats the answer, its probability, and the context with the answer highlighted."""
    begin, end = ("\x1b[1;7m", "\x1b[0m") if sys.stdout.isatty() else (">>>", "<<<")
    parts = (context[: answer.begin], answer.text, context[answer.end :])
    before, text, after = (shown(part.replace("\r\n", "\n"), kept="\n\t") for part in parts)
    marked = f"{before}{begin}{text}{end}{after}"
    return f"{text}\nprobability {answer.probability:.3f}\n\n{marked.strip()}"


def _read(name: str) -> str:
    try:
        with sys.stdin.buffer if name == "-" else open(name, "rb") as file:
            content = file.read(4 * LONGEST + 1)  # UTF-8 has at most 4 bytes a character
        if len(content) > 4 * LONGEST or len(text := content.decode("utf-8-sig")) > LONGEST:
            refuse("context_file", name, f"holds more than {LONGEST:,} characters; cut it")
        return text
    except OSError as error:
        refuse("context_file", name, f"can't be read ({error.strerror})")
    except UnicodeDecodeError:
        refuse("context_file", name, "is not UTF-8 text")


if __name__ == "__main__":
    flags.run(main, Options)
