"""A study's folder: taken for one study, read back.

study.json                  what the study is: another one is refused there
SETTING/seed-N/run/         the --output_dir of `train`
SETTING/seed-N/log.txt      all that it said
SETTING/seed-N/outcome.json what became of it; without one it goes on
SETTING/seed-N/.lock        locked by the run's process: an orphan is waited for
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, one_line, shown
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import PlannedRun, Study
from dawnbench_tf.studies.outcomes import Outcome

STUDY = "study.json"


def claim(folder: Path, study: Study) -> Study:
    """Takes a folder for a study, new or begun; holds its lock. Returns the study to carry out.

    A study may go on with more trials than it began with.

    Raises:
      Refusal: the folder holds another study or something else, or a study runs in it.
    """
    path = folder / STUDY
    if folder.is_dir() and not path.exists() and any(n.name != ".lock" for n in folder.iterdir()):
        why = "holds other files and no study; name a new or an empty folder"
        raise Refusal(f"--output_dir={folder}: {why}")
    files.make_folder(folder)
    files.lock(folder, "another process carries out the study in it; wait for its end")
    if path.exists():
        earlier = read(folder)
        trials = max(study.trials, earlier.trials)
        study, earlier = replace(study, trials=trials), replace(earlier, trials=trials)
        other = _difference(earlier.values(), study.values())
        if other:
            text = f"holds study {earlier.name} with {other}; name another folder"
            raise Refusal(f"--output_dir={folder}: {text}")
    files.write_json(path, study.values())
    return study


def _difference(theirs, ours, name=""):
    """The first part in which two JSON values differ, in words; "" if they are alike."""
    if theirs == ours:
        return ""
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        theirs, ours = dict(enumerate(theirs)), dict(enumerate(ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        key = next(k for k in (*ours, *theirs) if ours.get(k) != theirs.get(k))
        return _difference(theirs.get(key), ours.get(key), f"{name}.{key}".strip("."))
    said = ("none" if value is None else one_line(shown(value), 60) for value in (theirs, ours))
    return "{}={}, not {}".format(name, *said)


def read(folder: Path) -> Study:
    """The study that a folder holds. Raises Refusal if it holds none."""
    path = folder / STUDY
    if not path.is_file():
        raise Refusal(f"{folder}: holds no {STUDY}; should be the --output_dir of a study")
    values = files.read_json(path)
    try:
        return Study.from_values(values)
    except ValueError as error:
        raise Refusal(
            f"{path}: is not what a study wrote ({one_line(error, 80)}); restore it"
        ) from None


def read_outcomes(folder: Path, planned: Sequence[PlannedRun]) -> dict[str, Outcome]:
    """The outcomes of a study so far, by name of the run, in the order of its plan.

    What was refused, in a study of an earlier version, has none.
    """
    by_name = {}
    for run in planned:
        path = folder / run.name / outcomes.OUTCOME
        if path.exists():
            by_name[run.name] = outcomes.read(path, run)
    return {n: outcome for n, outcome in by_name.items() if outcome.status != outcomes.REFUSED}


def unclaim(folder: Path) -> None:
    """Removes what a study has made that came to nothing: no run of it was begun."""
    if any(folder.glob(f"*/*/{outcomes.RUN}/*")) or any(folder.glob(f"*/*/{outcomes.OUTCOME}")):
        return
    for path in [*folder.glob(f"*/*/{outcomes.LOG}"), *folder.glob("*/*/.lock")]:
        files.discard(path)
    for path in (folder / STUDY, folder / ".lock"):
        files.discard(path)
    for path in [
        *folder.glob(f"*/*/{outcomes.RUN}"),
        *folder.glob("*/*"),
        *folder.glob("*"),
        folder,
    ]:
        try:
            path.rmdir()
        except OSError:
            pass  # something else lies in it
