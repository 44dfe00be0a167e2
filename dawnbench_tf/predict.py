"""Asks a trained model: classes of images, or answers to questions.

    dawnbench predict --model=RUN photo.jpg DIR   # five most probable classes
    dawnbench predict --model=RUN --csv DIR > classes.csv
    dawnbench predict --model=RUN --context_file=FILE "Who ...?" "Where ...?"
    dawnbench predict --model=RUN --context_file=FILE   # asks for questions

Exit status: 0, or 1 for bad input.
"""

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dawnbench_tf import flags, machine
from dawnbench_tf.refusals import Refusal, defused, refuse, shown
from dawnbench_tf.settings import check, setting
from dawnbench_tf.terminal import is_terminal

if TYPE_CHECKING:
    from dawnbench_tf.inference.classifier import Classes
    from dawnbench_tf.inference.reader import Answer

__all__ = ["predict", "ask"]

LONGEST = 500_000  # characters of a context, at most: models step through it token by token
AROUND = 200  # characters of the text that are shown on each side of an answer


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench predict`: the trained model, what is asked, the form of the output."""

    model: str = setting("", "--output_dir of a training run")
    count: int = setting(
        5, "number of classes of an image, or of answers to a question; --csv has the best", low=1
    )
    context_file: str = setting(
        "", "readers: text file (UTF-8) with the passage to answer from; - reads stdin"
    )
    most_words: int | None = setting(
        None, "readers: most tokens (BERT: WordPieces) of an answer; default: the recipe's", low=1
    )
    json: bool = setting(False, "print JSON, a line for each image or question")
    csv: bool = setting(False, "print CSV, a row for each image or question")

    def __post_init__(self) -> None:
        check(self)
        if not self.model.strip():
            refuse("model", "", "is required; --help shows how")
        if self.json and self.csv:
            refuse("csv", True, "and --json are two forms of the output; choose one")


def main(options: Options, arguments: list[str]) -> None:
    rows = _ask(options, arguments) if options.context_file else _classify(options, arguments)
    writer = csv.writer(sys.stdout)
    for number, (values, text) in enumerate(rows):
        if options.json:
            print(json.dumps(values), flush=True)
        elif options.csv:
            names, shares = values.pop("names", []), values.pop("probabilities", [])
            for rank, (name, share) in enumerate(zip(names, shares, strict=True), 1):
                values |= {f"class{rank}": name, f"probability{rank}": share}
            if not number:
                writer.writerow(values)
            writer.writerow(map(defused, values.values()))
        else:
            print(text, flush=True)


def predict(
    run: str | os.PathLike[str],
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    count: int = 5,
) -> "list[Classes]":
    """Returns the most probable classes of images, by a trained image model.

    Loads the model at each call; `inference.classifier.Classifier` keeps it.

    Args:
      run: folder of the training run.
      paths: images, in any format that training reads, and folders of them; one alone may be
        given without a list.
      count: number of classes of each image.

    Returns:
      For each image a `Classes`: `path`, `names` and `probabilities` of the most probable classes,
      and whether it is `turned`: its EXIF orientation is not applied, as in training.

    Raises:
      Refusal: the folder holds no run on images or is damaged, or a path is no image.
    """
    with machine.importing():
        from dawnbench_tf.inference.classifier import Classifier
    return list(Classifier(_folder(run))(paths, count))


def ask(
    run: str | os.PathLike[str], context: str, question: str, most_words: int | None = None
) -> "Answer":
    """Returns the answer of a trained reading model.

    Loads the model at each call; `inference.reader.Reader` keeps it for several questions, and has
    the second-best answers too.

    Args:
      run: folder of the training run.
      context: the text to answer from.
      question: the question.
      most_words: most tokens (BERT: WordPieces) of the answer; None for the recipe's limit, if any.

    Returns:
      An `Answer`: `text`, which is context[begin:end], `begin`, `end` (characters), `probability`.

    Raises:
      Refusal: the folder holds no run of a reading task or is damaged, or a text holds no word.
    """
    with machine.importing():
        from dawnbench_tf.inference.reader import Reader
    return Reader(_folder(run))(context, question, most_words)


def _folder(run: str | os.PathLike[str]) -> Path:
    if not Path(run).is_dir():
        refuse("model", run, "is no folder; should be the --output_dir of a training run")
    return Path(run)


def _classify(options: Options, paths: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields values and text of each image."""
    if not paths:
        text = f"dawnbench predict --model={options.model} photo.jpg"
        raise Refusal(f"no image: {text}; for a reader, --context_file=FILE and questions")
    if options.most_words:
        refuse("most_words", options.most_words, "is for readers, with --context_file")
    folder = _folder(options.model)
    for path in paths:
        if not Path(path).exists():
            raise Refusal(f"{path}: no such file; should be an image or a folder of images")
    with machine.importing():
        from dawnbench_tf.inference.classifier import Classifier
    for image in Classifier(folder)(paths, options.count):
        note = "  (its EXIF orientation is not applied, as in training)" * image.turned
        lines = [
            f"{probability:8.1%}  {shown(name)}"
            for name, probability in zip(image.names, image.probabilities, strict=True)
        ]
        yield image._asdict(), "\n".join([f"{shown(image.path)}{note}", *lines])


def _ask(options: Options, questions: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields values and text of each question; asks for questions if there are none."""
    context, folder = _read(options.context_file), _folder(options.model)
    interactive = not questions
    if any(not question.strip() for question in questions):
        raise Refusal("a question is empty; should hold text")
    if interactive and options.context_file == "-":
        refuse("context_file", "-", "reads the text from stdin; name the questions as arguments")
    with machine.importing():
        from dawnbench_tf.inference.reader import Reader
    reader = Reader(folder)
    for question in _typed() if interactive else questions:
        try:
            answers = reader.answers(context, question, options.count, options.most_words)
        except Refusal as refusal:
            if not (interactive and sys.stdin.isatty()):
                raise
            print(refusal, file=sys.stderr)
            continue
        best = answers[0]
        values = {"question": question, **best._asdict()}
        values |= {"others": [answer._asdict() for answer in answers[1:]]} if options.json else {}
        others = "; ".join(
            f"{shown(' '.join(a.text.split()))} ({a.probability:.3f})" for a in answers[1:]
        )
        text = [show(context, best), *([f"others: {others}"] if others else [])]
        yield values, "\n".join([*[question] * (len(questions) > 1), *text])


def _typed() -> Iterator[str]:
    """Yields the questions that the user types."""
    asks = sys.stdin.isatty()
    while True:
        print("question: " * asks, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print("\n" * asks, end="", file=sys.stderr)
            return
        if line.strip():
            yield line.strip()


def show(context: str, answer: "Answer") -> str:
    """Formats the answer, its probability, and its surroundings with the answer highlighted."""
    begin, end = ("\x1b[1;7m", "\x1b[0m") if is_terminal(sys.stdout) else (">>>", "<<<")
    first, past = max(0, answer.begin - AROUND), min(len(context), answer.end + AROUND)
    parts = (context[first : answer.begin], answer.text, context[answer.end : past])
    before, text, after = (shown(part.replace("\r\n", "\n"), kept="\n\t") for part in parts)
    before = "..." * (first > 0) + before
    marked = f"{before}{begin}{text}{end}{after}" + "..." * (past < len(context))
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
    flags.run(main, Options, files=True)
