"""Checks entries against the benchmark's rules; makes a run's entry ready for a pull request.

    python -m dawnbench_tf.entries validate PATH... [--lenient] [--format=json]
    python -m dawnbench_tf.entries package RUN_DIR --author=NAME --author_email=ADDRESS

Exit status: 0, or 1 if anything is wrong.
"""

import datetime
import json
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from absl import app, flags

from dawnbench_tf import entry as entry_files
from dawnbench_tf import entry_rules, entry_source, options, run_entry, tasks
from dawnbench_tf.entry_rules import Grade
from dawnbench_tf.entry_source import Unreadable, Violation, shown
from dawnbench_tf.settings import Refusal, refuse

USAGE = "should be: validate PATH..., or package RUN_DIR"


def violations(path: Path, grade: Grade = Grade.REVIEW) -> tuple[int, list[Violation]]:
    """How many entries are at or below a path, and all that is wrong with them.

    Raises Refusal if there is no such path.
    """
    if path.is_dir():
        found = []
        files = list(entry_source.find(path, found))
        if not files and not found:
            found.append(Violation(path, 1, "folder", "holds no entry: no DATASET/train/NAME.json"))
    elif path.exists() or path.is_symlink():
        files, found = [path], []
    else:
        raise Refusal(f"{path}: is not there; should be an entry, or a tree of entries")
    entries = [file for file in files if file.suffix != ".tsv" or len(files) == 1]
    stems = {file.with_suffix("") for file in files if file.suffix == ".json"}
    for file in files:
        if file.suffix == ".tsv" and file.with_suffix("") not in stems:
            if not file.with_suffix(".json").is_file():
                text = f"has no {shown(file.stem)}.json beside it"
                found.append(Violation(file, 1, "pair", text))
                entries = [it for it in entries if it != file]
    for file in entries:
        found += _of_one(file.with_suffix(".json") if file.suffix == ".tsv" else file, grade)
    return len(entries), found


def _of_one(path, grade):
    try:
        return entry_rules.violations(entry_source.load(path), grade)
    except Unreadable as error:
        return [error.violation]


def validate(paths: list[Path], grade: Grade, as_json: bool) -> int:
    """Prints what is wrong with entries; returns the exit status."""
    checked = [violations(path, grade) for path in paths]
    found = [violation for _, some in checked for violation in some]
    if as_json:
        rows = [{**v._asdict(), "path": v.place()} for v in found]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        for violation in found:
            print(f"{violation} [{violation.rule}]")
        entries = sum(count for count, _ in checked)
        print(f"{entries} entries, {len(found)} violations", file=sys.stderr)
    return 1 if found else 0


def package(folder: Path, changes: dict, output: Path) -> list[Path]:
    """Writes the entries of a run's folder, completed, in the published layout below `output`.

    Args:
      folder: of the run.
      changes: fields of an Entry to set; "hardware_tag" for the file's name.
      output: what the benchmark's tree of entries is, or shall be.

    Raises Refusal, and writes nothing, if an entry is not ready.
    """
    if not folder.is_dir():
        raise Refusal(f"{folder}: is no folder; should be the folder of a run")
    files = [path for path in entry_source.find(folder, []) if path.suffix == ".json"]
    if not files:
        why = "holds no entry; what may not be ranked is in not_an_entry/, with the reasons"
        raise Refusal(f"{folder}: {why}")
    made = [_completed(path, dict(changes)) for path in files]
    for entry in made:
        if wrong := entry_files.violations(entry):
            raise Refusal(f"{wrong[0]}")
        for remark in entry_files.violations(entry, Grade.REVIEW):
            print(f"reviewers will ask: {remark.text}", file=sys.stderr)
    return [entry_files.write(output, entry) for entry in made]


def _completed(path, changes):
    tag = changes.pop("hardware_tag")
    try:
        entry = replace(entry_files.read(path), **changes)
    except Unreadable as error:
        raise Refusal(str(error)) from None
    if not tasks.RANKED[entry.dataset].benchmark:
        raise Refusal(f"{shown(path)}: is of an embedded task; DAWNBench ranks none of these")
    tag = tag or entry.name.rsplit("_", 2)[-2]
    name = run_entry.name(entry.author, entry.model, tag, entry.framework)
    return replace(entry, name=name, timestamp=datetime.date.today())  # reviewers: the day of it


def define() -> None:
    """Defines the command's flags."""
    here = {"module_name": sys.argv[0]}
    flags.DEFINE_bool("lenient", False, "ask only what DAWNBench's own tests asked", **here)
    flags.DEFINE_enum("format", "text", ["text", "json"], "how violations are printed", **here)
    flags.DEFINE_string("author", "", "package: the author", **here)
    flags.DEFINE_string("author_email", "", "package: an address to reach the author at", **here)
    flags.DEFINE_string("hardware", "", "package: hardware with its machine type", **here)
    flags.DEFINE_string("hardware_tag", "", "package: hardware in the file's name", **here)
    flags.DEFINE_string("code_url", "", "package: where the code is", **here)
    flags.DEFINE_float("cost_per_hour", None, "package: on-demand price, USD per hour", **here)
    flags.DEFINE_string("output_dir", "submission", "package: tree of entries to write to", **here)


def main(argv):
    options.end_quietly()
    action, paths = "".join(argv[1:2]), [Path(name) for name in argv[2:]]
    try:
        if action == "validate" and paths:
            grade = Grade.CHECKED if flags.FLAGS.lenient else Grade.REVIEW
            return validate(paths, grade, flags.FLAGS.format == "json")
        if action == "package" and len(paths) == 1:
            _package(paths[0])
            return 0
        raise Refusal(f"{shown(' '.join(argv[1:])) or 'nothing'}: {USAGE}")
    except Refusal as refusal:
        options.exit_with(str(refusal))


def _package(folder):
    values = flags.FLAGS
    if not values.author:
        refuse("author", "", "should name who submits the entry")
    if not re.fullmatch(r"\S+@\S+", values.author_email):
        refuse("author_email", values.author_email, "should be an address to reach the author at")
    given = ("author", "author_email", "hardware", "hardware_tag", "code_url", "cost_per_hour")
    changes = {name: values[name].value for name in given if values[name].value}
    for path in package(folder, {"hardware_tag": "", **changes}, Path(values.output_dir)):
        print(path)


if __name__ == "__main__":
    define()
    app.run(main, flags_parser=partial(options.parse, files=True))
