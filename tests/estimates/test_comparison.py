"""Machines side by side: files, damaged files, table."""

import json

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.estimates import comparison
from dawnbench_tf.estimates.prediction import Estimate, predict
from dawnbench_tf.refusals import Refusal
from tests.estimates.samples import sample


def machine(folder, name, speed, **changes):
    """Writes the file of a machine that has 100 ms / `speed` a step; returns its path."""
    laps = [(1.0 / speed, 10), (1.1 / speed, 10)]
    row = predict(recipes.get("digits/resnet8"), sample(laps), cost_per_hour=0.36)
    rows = [row, Estimate("qa_mini/bidaf", reason="no step ended within 5 s")]
    own = comparison.Machine("", f"{speed} CPU", {}, "2026-11-23", 0.36, rows)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**own.facts(), **changes}))
    return path


def test_machines_stand_side_by_side_with_speeds(tmp_path):
    paths = [machine(tmp_path, "a", 1), machine(tmp_path, "b", 4)]
    compared = comparison.compare(paths)
    assert compared.recipes == ["digits/resnet8"]  # what failed is not compared
    text = comparison.format_text(compared)
    assert "1.00x" in text and "4.00x" in text and "b: 4 CPU" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"format": 2}, "format should be 1"),
        ({"hardware": 3}, "hardware should be text"),
        ({"estimates": [{"recipe": "x"}]}, "estimates.0: estimate: '.*' is missing"),
        ({"estimates": [Estimate("x").facts()]}, "estimates.0: examples_per_second should be over"),
        ({"more": 1}, "'more' is no field"),
        ({"estimates": []}, "no recipe was estimated on two"),
    ],
)
def test_a_file_of_somebody_s_is_refused_by_name_and_key(tmp_path, changes, line):
    paths = [machine(tmp_path, "a", 1), machine(tmp_path, "b", 2, **changes)]
    with pytest.raises(Refusal, match=rf"b.json.*: {line}"):
        comparison.compare(paths)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(Refusal, match="a.json: can't be read .*--output=FILE` writes one"):
        comparison.read(tmp_path / "a.json")
