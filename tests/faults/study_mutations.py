"""Studies' files, damaged at random: grids, studies, outcomes of runs."""

import contextlib
import io
import json
from pathlib import Path

from dawnbench_tf.studies import grid, grid_files, reports
from tests.faults.mutations import Kind, _instead, _outcome, without_checksum
from tests.studies import samples


def studies(home: Path) -> Kind:
    """A damaged grid is planned or refused; a damaged study is reported unchanged, or refused."""
    own, folder = home / "own.toml", home / "study"
    own.write_text(samples.GRID)
    outcome = lambda run: samples.outcome(run.labels, run.seed)  # noqa: E731
    samples.write(folder, samples.study(trials=1), outcome)
    paths = [own, folder / "study.json", *sorted(folder.glob("*/*/outcome.json"))]

    def report():
        results = reports.load(folder)
        text = io.StringIO()
        reports.write_csv([results], text)
        return json.dumps(reports.values(results)), text.getvalue() + reports.format_text(results)

    whole = report()

    def trial(chosen):
        path = chosen.choice(paths)
        unsigned = path != own and chosen.random() < 0.5
        checked = without_checksum(path) if unsigned else contextlib.nullcontext()
        with checked, _instead(chosen, path):
            if path == own:
                return _outcome(lambda: grid.plan(grid_files.read(own)))[1]
            value, wrong = _outcome(report)
            signed = b'"sha256"' in path.read_bytes()
        if wrong or value is None:
            return wrong
        if any(sign in value[1] for sign in ("\x1b", "\u202e", "\0")):
            return "raw control characters"
        return "other results" if signed and value != whole else ""

    return Kind("studies", trial)
