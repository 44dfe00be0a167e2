"""The folder of a study: claiming and reading it.

study.json                  the study; the folder is refused to any other study
SETTING/seed-N/run/         the --output_dir of `train`
SETTING/seed-N/log.txt      output of the run's process
SETTING/seed-N/outcome.json the run's outcome; a run without one is started or resumed
SETTING/seed-N/.lock        locked while the run's process lives, also after the study was killed
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dawnbench_tf import files
from dawnbench_tf.refusals import Refusal, one_line, refusing, shown
from dawnbench_tf.studies import outcomes
from dawnbench_tf.studies.grid import PlannedRun, Study
from dawnbench_tf.studies.outcomes import Outcome

STUDY = "study.json"


@contextmanager
def claimed(folder: Path, study: Study) -> Iterator[Study]:
    """Claims a folder for a study, and holds its lock during the body. Raises Refusal."""
    # Yields the study to run, see `continued`.
    path = folder / STUDY
    if folder.is_dir() and not path.exists() and any(n.name != ".lock" for n in folder.iterdir()):
        text = "holds other files and no study; name a new or an empty folder"
        raise Refusal(f"--output_dir={folder}: {text}")
    files.make_folder(folder)
    with files.locked(folder, "another process carries out the study in it; wait for its end"):
        study = continued(folder, study)
        files.write_json(path, study.values())
        yield study


def continued(folder: Path, study: Study) -> Study:
    """Returns the study with at least the trials of its folder's. Raises Refusal for another's."""
    if not (folder / STUDY).exists():
        return study
    earlier = read(folder)
    trials = max(study.trials, earlier.trials)
    modules = {**study.modules, **earlier.modules}  # releases to 0.2 recorded no files
    study, earlier = replace(study, trials=trials), replace(earlier, trials=trials, modules=modules)
    if other := _difference(earlier.values(), study.values()):
        text = f"holds study {earlier.name} with {other}; name another folder"
        raise Refusal(f"--output_dir={folder}: {text}")
    return study


def _difference(theirs: Any, ours: Any, name: str = "") -> str:
    """Describes the first difference between two JSON values; "" if they are equal."""
    if theirs == ours:
        return ""
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        theirs, ours = dict(enumerate(theirs)), dict(enumerate(ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        key = next(k for k in (*ours, *theirs) if ours.get(k) != theirs.get(k))
        return _difference(theirs.get(key), ours.get(key), f"{name}.{key}".strip("."))
    if isinstance(theirs, list) and isinstance(ours, list):
        return f"{len(theirs)} {name}, not {len(ours)}"
    texts = ("none" if value is None else one_line(shown(value), 60) for value in (theirs, ours))
    return "{}={}, not {}".format(name, *texts)


def read(folder: Path) -> Study:
    """Reads the study of a folder. Raises Refusal if the folder holds none."""
    path = folder / STUDY
    if not path.is_file():
        raise Refusal(f"{folder}: holds no {STUDY}; should be the --output_dir of a study")
    values = files.read_json(path)
    with refusing(path, "is damaged or no study", ValueError, hint="restore it"):
        return Study.from_values(values)


def read_outcomes(
    folder: Path, planned: Sequence[PlannedRun], retry: bool = False
) -> dict[str, Outcome]:
    """Reads the outcomes of a study's ended runs: run name -> outcome, in the order of the plan."""
    # Refused runs, which version 0.1.0 recorded, are left out; with `retry`, crashed ones too.
    left_out = (outcomes.REFUSED, outcomes.CRASHED) if retry else (outcomes.REFUSED,)
    paths = {run.name: folder / run.name / outcomes.OUTCOME for run in planned}
    by_name = {r.name: outcomes.read(paths[r.name], r) for r in planned if paths[r.name].exists()}
    return {n: outcome for n, outcome in by_name.items() if outcome.status not in left_out}


def unclaim(folder: Path) -> None:
    """Removes the files of a study none of whose runs has begun; otherwise does nothing."""
    if any(folder.glob(f"*/*/{outcomes.RUN}/*")) or any(folder.glob(f"*/*/{outcomes.OUTCOME}")):
        return
    logs = [*folder.glob(f"*/*/{outcomes.LOG}"), *folder.glob("*/*/.lock")]
    for path in [*logs, folder / STUDY, folder / ".lock"]:
        files.discard(path)
    runs = folder.glob(f"*/*/{outcomes.RUN}")
    for path in [*runs, *folder.glob("*/*"), *folder.glob("*"), folder]:
        with suppress(OSError):  # it contains other files
            path.rmdir()
