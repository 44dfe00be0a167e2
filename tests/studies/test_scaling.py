"""Predicted scaling efficiency: hand-computed cases, reports. Published ones: test_scripts.py."""

import json

import pytest

from dawnbench_tf.studies import figures, reports, scaling
from dawnbench_tf.studies.grid import Factor, Level
from tests.studies import samples

STUDY = ("-m", "dawnbench_tf.study")


def test_by_hand():
    """At 1 Gbit/s 125 MB take a second. Of two replicas each sends 2 x 1/2 of the gradients."""
    two = [scaling.predict(step, 125e6, scaling.Network(1), 2) for step in (3, 1)]
    assert two == [(3 / 4, 1), pytest.approx((1 / 2, 3 / 4))]  # 2/3 of a step hide the exchange
    # A ring of four replicas sends 2 x 3/4 of the gradients; one of two machines 2 x 1/2.
    assert scaling.predict(3, 125e6, scaling.Network(1, 2), 2) == (3 / 4.5, 1)
    assert scaling.predict(1, 125e6, scaling.Network(1, 8), 1) == (1, 1)


@pytest.mark.parametrize(
    ("gbits", "replicas", "machines"), [(0, 1, 2), (-1, 1, 2), (1, 0, 2), (1, 1, 0)]
)
def test_numbers_out_of_range_are_refused(gbits, replicas, machines):
    with pytest.raises(ValueError, match="should be positive"):
        scaling.predict(1, 1e6, scaling.Network(gbits, replicas), machines)


@pytest.fixture
def folder(tmp_path):
    return write_study(tmp_path / "a", {"stepSeconds": 1.0, "gradientBytes": 125_000_000})


def write_study(folder, utilization):
    levels = (
        Level("1", {}),
        Level("2", {"strategy": "mirrored", "logical_cpus": 2}),
    )
    study = samples.study(factors=(Factor("devices", levels),), trials=1, figure="scaling")

    def make(planned):
        return samples.outcome(planned.labels, planned.seed, utilization=utilization)

    samples.write(folder, study, make)
    return folder


def test_a_report_predicts_more_machines(folder):
    results = reports.load(folder, scaling.Network(10, 8))
    text = reports.format_text(results, "")
    assert "8 on a machine, 10 Gbit/s between machines, each replica with the batch of one" in text
    low = 1 / (1 + 2 * 15 / 16 * 0.1)  # 125 MB at 10 Gbit/s take 0.1 s
    assert f"16: {low:.0%} to 100%, 32: " in text and "256: 83% to 100%. " in text
    assert "A step takes 1 s, its gradients 125 MB." in text
    values = json.loads(json.dumps(reports.values(results), allow_nan=False))
    assert values["predictedEfficiency"]["16"] == {"low": pytest.approx(low), "high": 1}
    assert len(figures.draw(results).axes) == 3
    without = reports.load(folder)
    assert "Predicted" not in reports.format_text(without, "")
    assert len(figures.draw(without).axes) == 2


def test_a_study_without_a_measured_step_says_so(tmp_path):
    folder = write_study(tmp_path / "a", {})
    results = reports.load(folder, scaling.Network(10))
    assert "No prediction for more machines: " in reports.format_text(results, "")
    assert len(figures.draw(results).axes) == 2


def test_the_command_predicts(cold_command, folder):
    flags = ("report", folder, "--network_gbits=10", "--replicas_per_machine=8")
    done = cold_command(*flags, program=STUDY)
    assert done.returncode == 0
    assert "Predicted efficiency by number of replicas, 8 on" in done.stdout
    assert "Predicted efficiency" in (folder / "report.html").read_text()
    done = cold_command(*flags[:2], flags[3], program=STUDY)
    assert done.returncode == 1
    assert done.stderr == "study.py: --replicas_per_machine=8: is for --network_gbits\n"
