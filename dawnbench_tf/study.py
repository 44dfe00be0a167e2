"""Runs a grid of training runs and compares times to accuracy.

    dawnbench study                        # lists the papers' studies
    dawnbench study trials --trials=20     # on the embedded digits
    dawnbench study batch_size --recipe=cifar10/airbench94 --data_dir=DIR
    dawnbench study grid.toml --jobs=8 --launch='srun --gres=gpu:1 {command}'
    dawnbench study report DIR [DIR]       # tables and figures of one or two

Runs that do not converge, crash or run out of memory are kept as results. The
same command continues an interrupted study. Exit status: 0; 1 for bad input.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dawnbench_tf import files, flags, terminal
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.recipes import recipe_files
from dawnbench_tf.refusals import Refusal, refuse, suggestion
from dawnbench_tf.settings import check, documented, flat, setting
from dawnbench_tf.studies import grid, grid_files, plans, rows, runner, store
from dawnbench_tf.submission import prices

if TYPE_CHECKING:
    from dawnbench_tf.studies.summaries import Results

__all__ = ["run_study", "write_report", "format_table", "Options"]

REPORT, REPORT_PAGE = "report", "report.html"


@documented
@dataclass(frozen=True)
class Options:
    """Options of a study: its recipe, how its runs are started, how it is reported.

    Attributes:
      run: options of every training run.
    """

    recipe: str = setting(
        "", "recipe to study: TASK/NAME, FILE.toml or MODULE:ATTRIBUTE; default: the study's own"
    )
    scale: str = setting(
        "small",
        "small: on the embedded digits; paper: the paper's scale, on CIFAR-10",
        choices=rows.SCALES,
    )
    trials: int = setting(
        0, "runs of each setting, seeds from --seed (0) on; 0: the study's own number"
    )
    levels: str = setting(
        "", "values of the field that the study varies, e.g. 64,256,1024; default: its own"
    )
    minutes: float = setting(
        0.0,
        "wall-time limit of a new study on this machine, with the time of its plan: reduces the "
        "number of trials and, if five do not fit, of levels; 0: no limit",
    )
    jobs: int = setting(1, "number of runs at a time", low=1)
    launch: str = setting(
        "",
        "launch command of each run: 'srun {command}', 'ssh node{slot} {quoted}'; also {name}; "
        "split into words without a shell; default: runs start on this machine",
    )
    retry: bool = setting(False, "repeat runs that crashed")
    dry_run: bool = setting(False, "list the runs with the plan of time and cost; start none")
    estimate: bool = setting(
        True,
        "plan a new study's time and cost from steps of its networks, timed on this machine for "
        "up to 45 s each; if not, from the recipes' evidence",
    )
    plot: str = setting("", "report: file for the figure, .png, .svg or .pdf")
    json: bool = setting(False, "report: print all results as JSON")
    csv: bool = setting(False, "report: print a CSV row for each run")
    run: RunOptions = RunOptions()

    def __post_init__(self) -> None:
        check(self)
        runner.check_template(self.launch)
        if self.plot:
            files.check_figure(Path(self.plot))
        if self.json and self.csv:
            raise Refusal("--json and --csv are two forms of a report; choose one")
        if self.dry_run and (self.json or self.csv):
            refuse("dry_run", True, "prints the plan; --json and --csv are of a report")


def main(options: Options, arguments: list[str]) -> int:
    changes = flags.replacements(Recipe)
    if not arguments:
        if options != Options() or changes:
            text = "name the study first: dawnbench study NAME ...; `study` alone lists them"
            raise Refusal(text)
        print(format_table())
        return 0
    name, *more = arguments
    if name == REPORT:
        own = {item: getattr(options, item) for item in ("plot", "json", "csv")}
        if options != Options(**own) or changes:
            raise Refusal("report: takes no flags but --plot, --json and --csv")
        return report(options, files.paths(more))
    study = _changed_study(name, options, changes)
    if more:
        raise Refusal(f"{more[0]}: one study at a time; flags are written --name=value")
    folder = _folder(name, options)
    if not options.dry_run:
        _carry_out(study, options, folder)
        return report(options, [folder])
    study, plan = _in_time(study, options, folder)
    planned = grid.plan(store.continued(folder, study))
    ended = store.read_outcomes(folder, planned, options.retry)
    for run in planned:
        if run.name not in ended:
            print(run.name, shlex.join(run.flags))
    print(plans.describe(planned, ended, options.jobs))
    if not ended:
        plan = plan or plans.make(planned, options.estimate, bool(options.launch))
        print(terminal.wrapped(str(plan)))
    return 0


def format_table() -> str:
    """Formats the list of built-in studies."""
    studies = rows.STUDIES[rows.SCALES[0]].values()
    lines = [f"{study.name:14}  {study.question} ({study.source})" for study in studies]
    lines += ["", "or FILE.toml, a grid of your own: docs/studies.md"]
    return terminal.wrapped("\n".join(lines), indent=16)


def run_study(
    name: str,
    options: Options = Options(),
    output: str | os.PathLike[str] | None = None,
    **changes: Any,
) -> "Results":
    """Runs every training run of a study that has not ended yet; writes and returns the report.

    Each run is a process of its own, `dawnbench train`. A run that misses its threshold or crashes
    is a result. Prints nothing; what the command would print goes to the logger "dawnbench_tf".

    Args:
      name: a study of `format_table()`, or the path of a TOML file with a grid.
      options: recipe, trials, levels and jobs; `options.run` for every run, with `data_dir`.
      output: folder of the study; one that holds the same study goes on. Default:
        `options.run.output_dir`, else studies/NAME.
      **changes: settings of the recipe for every run, by flat name: `epochs=5`.

    Returns:
      The results, also written to report.html in the folder: `settings` with the outcome of each
      run, and in `by_threshold` statistics of each setting.

    Raises:
      Refusal: there is no such study, a setting is out of range, or the folder holds another study.
      KeyboardInterrupt: call it again with the same folder to go on.
    """
    folder = Path(output) if output else _folder(name, options)
    _carry_out(_changed_study(name, options, changes), options, folder)
    return write_report([folder])[0][0]


def _carry_out(study: grid.Study, options: Options, folder: Path) -> None:
    grid.plan(study)  # refuses settings before the folder is touched
    study, plan = _in_time(study, options, folder)
    with store.claimed(folder, study) as study:
        planned = grid.plan(study)
        if not store.read_outcomes(folder, planned):
            plan = plan or plans.make(planned, options.estimate, bool(options.launch))
            terminal.say(terminal.wrapped(str(plan)))
        how = options.jobs, options.launch, options.retry
        running = runner.Runner(folder, planned, study.latency, *how)
        terminal.say(f"{plans.describe(planned, running.outcomes, options.jobs)}; in {folder}")
        try:
            running.run()
        except Refusal:
            store.unclaim(folder)
            raise


def _in_time(
    study: grid.Study, options: Options, folder: Path
) -> tuple[grid.Study, plans.Plan | None]:
    """Returns a study reduced to `options.minutes`, and its plan; None: no plan was made."""
    # A study that goes on keeps its trials and levels, unless the options state others or it is no
    # reduction of `study`.
    if not options.minutes:
        return study, None
    if (folder / store.STUDY).is_file():
        begun = store.read(folder)
        study = replace(study, trials=options.trials or begun.trials)
        ours, theirs = ({f.name: f.levels for f in one.factors} for one in (study, begun))
        part = ours.keys() == theirs.keys() and all(v in ours[n] for n in ours for v in theirs[n])
        if part and not options.levels:
            study = replace(study, factors=begun.factors)
        return study, None
    begin = time.monotonic()
    plan = plans.make(grid.plan(study), options.estimate, bool(options.launch))
    left = options.minutes * 60 - (time.monotonic() - begin)
    study, plan, left_out = plans.fit(study, plan, left)
    terminal.say(f"in {options.minutes:g} minutes: {left_out or 'all of the study'}")
    return study, plan


def _folder(name: str, options: Options) -> Path:
    if options.run.output_dir:
        return Path(options.run.output_dir)
    recipe = re.sub("[/:]", "-", options.recipe)
    if recipe_files.is_path(options.recipe):
        recipe = Path(options.recipe).stem
    own = name.endswith(".toml") or options.scale == rows.SCALES[0]
    words = (Path(name).stem, recipe, "" if own else options.scale)
    return Path("studies", "-".join(filter(None, words)))


def _changed_study(name: str, options: Options, changes: dict[str, Any]) -> grid.Study:
    """Returns the study with the changes of the options; `grid.plan` checks its runs."""
    studies, settings = rows.STUDIES[options.scale], {}
    if name.endswith(".toml"):
        study = grid_files.read(Path(name))
    elif name in studies:
        study = studies[name]
    else:
        raise Refusal(f"{name}: no such study; {suggestion(name, [*studies, REPORT])}")
    levels = [level.settings for factor in study.factors for level in factor.levels]
    instance = options.run.credits.instance
    if instance and any("cost_per_hour" in settings for settings in levels):
        text = f"is the price of all its devices; give the --cost_per_hour of one to {study.name}"
        refuse("instance", instance, text)
    credits = replace(prices.with_instance_price(options.run.credits), instance="")
    for own in (options.run, credits):
        default = flat(type(own)())
        settings.update({n: value for n, value in flat(own).items() if value != default[n]})
    settings.pop("output_dir", None)
    if options.levels:
        study = grid.with_levels(study, [_parse_level(text) for text in options.levels.split(",")])
    changed = grid.with_changes(study, options.recipe, options.trials, {**settings, **changes})
    return changed.with_modules()


def _parse_level(text: str) -> int | float | str:
    if text.strip() in ("true", "false"):
        return text.strip() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.strip()


def report(options: Options, folders: list[Path]) -> int:
    """Reports one study, or two side by side, as page and text, JSON or CSV; returns the status."""
    studies, lines, path = _read_report(folders)
    from dawnbench_tf.studies import figures, reports

    if options.plot:
        files.save_figure(figures.draw(*studies), Path(options.plot))
    if options.json:
        print(json.dumps([reports.values(results) for results in studies], indent=1))
    elif options.csv:
        reports.write_csv(studies, sys.stdout)
    else:
        parts = [reports.printable(lines)] if lines else []
        for results in studies:
            parts += [f"{reports.printable([results.study.name])}:"] * len(studies[1:])
            parts.append(reports.format_text(results))
        print(terminal.wrapped("\n\n".join(parts)), flush=True)
        reports.write_page(path, studies, lines)
        print("", path, sep="\n")
    return 0


def write_report(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> "tuple[list[Results], list[str], Path]":
    """Writes the HTML report of one study, or of two side by side, to the first one's folder.

    Args:
      folders: of one or two studies of which runs have ended; one may be given without a list.

    Returns:
      The results of each study; sentences that compare two; the path of the page.

    Raises:
      Refusal: a folder holds no study, or no run has ended yet.
    """
    from dawnbench_tf.studies import reports  # slow: a second

    studies, lines, path = _read_report(files.paths(folders))
    reports.write_page(path, studies, lines)
    return studies, lines, path


def _read_report(folders: Sequence[Path]) -> "tuple[list[Results], list[str], Path]":
    """Returns what `write_report` does, and writes nothing."""
    from dawnbench_tf.studies import reports

    if not 1 <= len(folders) <= 2:
        raise Refusal("report: should be followed by the folder of a study, or of two")
    studies = [reports.load(folder) for folder in folders]
    names = [folder.resolve().name for folder in folders]
    if studies[1:]:  # told apart by their folders: both may be of one study
        names = names if names[0] != names[1] else [*map(str, folders)]
        pairs = zip(studies, names, strict=True)
        studies = [r._replace(study=replace(r.study, name=name)) for r, name in pairs]
    lines = reports.compare_studies(studies[0], studies[1], names) if studies[1:] else []
    versus = f"versus-{files.hyphenated(names[-1])}.html"
    return studies, lines, folders[0] / (versus if lines else REPORT_PAGE)


if __name__ == "__main__":
    flags.run(
        main,
        Options,
        files=True,
        replaces=Recipe,
        tables={"instance": prices.format_table},
        interrupted="to continue: {command}",
    )
