"""Checks entries against the rules; packages a run's entries.

    dawnbench entries validate PATH... [--lenient] [--format=json]
    dawnbench entries package RUN_DIR --author=NAME --author_email=ADDRESS

Exit status: 0; 1 for violations or bad input.
"""

import datetime
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dawnbench_tf import files, flags, terminal
from dawnbench_tf.recipe.options import ANONYMOUS, Credits
from dawnbench_tf.refusals import Refusal, one_line, refuse, shown
from dawnbench_tf.runs import run_entry
from dawnbench_tf.settings import all_settings, flat, setting
from dawnbench_tf.settings import check as check_settings
from dawnbench_tf.submission import rules
from dawnbench_tf.submission.entry import Entry, check, format_files, read_entry, write_entry
from dawnbench_tf.submission.rules import Grade, is_link
from dawnbench_tf.submission.source import Unreadable, Violation, find, has_task, load

__all__ = ["check_tree", "package"]

OF_VALIDATE = {"lenient", "format"}  # flags; the others are of package


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench entries`: rules and output of validate, fields of packaged entries."""

    lenient: bool = setting(False, "validate: apply only the rules of DAWNBench's own tests")
    format: str = setting("text", "validate: output format of violations", choices=("text", "json"))
    code_url: str = setting("", "package: http or https URL of the code")
    output_dir: str = setting("submission", "package: entry tree to write to")
    credits: Credits = Credits()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.code_url and not is_link(self.code_url):
            refuse("code_url", self.code_url, "should be an http or https URL")


def check_tree(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], grade: Grade = Grade.REVIEW
) -> tuple[int, list[Violation]]:
    """Checks all entries at or below paths, each once.

    Args:
      paths: JSON or TSV files of entries, or folders.
      grade: the strictest grade of rules to apply.

    Returns:
      The number of entries, and their violations.

    Raises:
      Refusal: there is no such path.
    """
    violations, entries = list[Violation](), dict[Path, Path]()  # absolute path -> as it was given
    for path in files.paths(paths):
        if path.is_dir():
            before, own = len(violations), list(find(path, violations))
            if not own and len(violations) == before:
                text = "holds no entry, as DATASET/train/NAME.json; not_an_entry/ is passed over"
                violations.append(Violation(path, 1, "folder", text))
        elif path.exists() or path.is_symlink():
            own = [path]
        else:
            raise Refusal(f"{path}: is not there; should be an entry, or a tree of entries")
        for file in own:
            entry = file.with_suffix(".json") if file.suffix == ".tsv" else file
            if entry is file or os.path.lexists(entry):
                entries.setdefault(entry.absolute(), entry)
            else:
                text = f"has no {shown(file.stem)}.json beside it"
                violations.append(Violation(file, 1, "pair", text))
    for entry in entries.values():
        try:
            violations += rules.find_violations(load(entry), grade)
        except Unreadable as error:
            violations.append(error.violation)
    return len(entries), violations


def validate(paths: list[Path], grade: Grade, as_json: bool) -> int:
    """Prints the violations of entries and folders; returns the exit status. Raises Refusal."""
    count, violations = check_tree(paths, grade)
    if as_json:
        print(json.dumps([{**v._asdict(), "path": v.display_path()} for v in violations], indent=1))
    else:
        for violation in violations:
            print(f"{violation} [{violation.rule}]")
        noun = "entry" if count == 1 else "entries"
        terminal.say(f"{count} {noun}, {terminal.counted(len(violations), 'violation')}")
    return 1 if violations else 0


def package(
    folder: str | os.PathLike[str],
    changes: dict[str, Any],
    output: str | os.PathLike[str],
    tag: str = "",
    cost_per_hour: float | None = None,
) -> list[Path]:
    """Writes the entries of a run, completed, to an entry tree in the published layout.

    Args:
      folder: the run's folder.
      changes: field of `Entry` -> new value, but for name and timestamp, which are set here.
      output: root of the entry tree.
      tag: hardware tag in the file names; "" keeps the run's.
      cost_per_hour: price of the hardware in USD per hour; None keeps the run's.

    Returns:
      Paths of the JSON files.

    Raises:
      Refusal: an entry breaks a rule, or would replace another entry; nothing is written.
    """
    folder, output = Path(folder), Path(output)
    if not folder.is_dir():
        raise Refusal(f"{folder}: is no folder; should be the folder of a run")
    own_files = [path for path in find(folder, []) if path.suffix == ".json" and has_task(path)]
    if not own_files:
        reason = "holds no entry; runs that may not be ranked are in not_an_entry/, with reasons"
        raise Refusal(f"{folder}: {reason}")
    entries = [_complete(path, changes, cost_per_hour, tag) for path in own_files]
    # None may replace another one, here or in the tree.
    paths: dict[Path, Path] = {}
    for entry, file in zip(entries, own_files, strict=True):
        path = output / entry.dataset / entry.phase / f"{entry.name}.json"
        if path in paths:
            text = f"would both be {shown(path.name)}; package them apart, with --hardware_tag"
            raise Refusal(f"{shown(paths[path])} and {shown(file)}: {text}")
        paths[path] = file
        same = entry
        with suppress(Unreadable, KeyError):  # packaged on another day
            same = replace(entry, timestamp=read_entry(path).timestamp)
        contents = zip((path, path.with_suffix(".tsv")), format_files(same), strict=True)
        for target, content in contents:
            if content is None or not os.path.lexists(target):
                continue
            if not target.is_file() or target.read_bytes() != content.encode():
                text = "another entry of that name is there; move it away, or name --output_dir"
                raise Refusal(f"{shown(target)}: {text}")
    for entry in entries:
        if violations := check(entry):
            raise Refusal(f"{violations[0]}")
        for remark in check(entry, Grade.REVIEW):
            terminal.say(f"reviewers will ask: {one_line(remark.text)}")
    return [write_entry(output, entry) for entry in entries]


def _complete(path: Path, changes: dict[str, Any], cost_per_hour: float | None, tag: str) -> Entry:
    try:
        entry = replace(read_entry(path), **changes)
    except Unreadable as error:
        raise Refusal(str(error)) from None
    if not entry.task.benchmark:
        text = "is of a task outside DAWNBench; there is nowhere to submit it"
        raise Refusal(f"{shown(path)}: {text}")
    if entry.author in ("", ANONYMOUS):
        refuse("author", entry.author, "should name who submits the entry")
    if not entry.author_email:
        refuse("author_email", "", "should be an address to reach the author at")
    if cost_per_hour is not None:
        entry = run_entry.with_price(entry, cost_per_hour)
    parts = entry.name.split("_")
    if not tag and len(parts) < 4:
        text = "is not named AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK; give --hardware_tag"
        raise Refusal(f"{shown(path)}: {text}")
    name = run_entry.entry_name(entry.author, entry.model, tag or parts[-2], entry.framework)
    return replace(entry, name=name, timestamp=datetime.date.today())  # the day of submission


def main(options: Options, arguments: list[str]) -> int:
    action, paths = "".join(arguments[:1]), files.paths(arguments[1:])
    credits = options.credits
    if credits.instance:
        text = "is of this machine, for train and infer; give --cost_per_hour and --hardware"
        refuse("instance", credits.instance, text)
    for name, value in (flat(options) | flat(credits)).items():
        other = "validate" if name in OF_VALIDATE else "package"
        if flags.is_given(name) and action in ("validate", "package") and action != other:
            refuse(name, value, f"is for `{other}`; leave it out")
    if action == "validate" and paths:
        grade = Grade.CHECKED if options.lenient else Grade.REVIEW
        return validate(paths, grade, options.format == "json")
    if action != "package" or len(paths) != 1:
        usage = "should be: validate PATH..., or package RUN_DIR"
        raise Refusal(f"{shown(one_line(' '.join(arguments))) or 'nothing'}: {usage}")
    names = ("author", "author_email", "hardware")
    changes = {name: getattr(credits, name) for name in names} | {"code_url": options.code_url}
    changes = {name: value for name, value in changes.items() if value not in ("", ANONYMOUS)}
    output, price = Path(options.output_dir), credits.cost_per_hour
    for path in package(paths[0], changes, output, credits.hardware_tag, price):
        print(path)
    return 0


if __name__ == "__main__":
    flags.run(main, Options, files=True, common=lambda: all_settings(Options).keys() - {"instance"})
