"""The plan of a study: hand-computed cases, with samples in place of timed steps."""

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, plans
from dawnbench_tf.studies.grid import Factor, Level
from tests.estimates.samples import sample
from tests.studies import samples


@pytest.fixture
def timed(monkeypatch):
    """Models whose steps were timed."""
    models = []

    def take_sample(recipe, options, seconds):
        models.append(recipe.model)
        return sample()

    monkeypatch.setattr(plans.process, "take_sample", take_sample)
    return models


def planned(values=("resnet8_v1_pad",), **settings):
    factor = Factor("model", tuple(Level("", {"model": model}) for model in values))
    return grid.plan(samples.study(factors=(factor,), trials=2, settings=settings))


def test_a_plan_has_runs_hours_and_dollars_of_timed_steps(timed):
    plan = plans.make(planned(cost_per_hour=36.0))
    epochs = recipes.get("digits/resnet8").evidence[-1].epochs
    mean = sum(epochs) / len(epochs)  # 10.4: 11 evaluations of 2 s
    each = 6.5 - 1 + mean * 20 * 0.1 + 4 + 1 + 11 * 2
    assert plan.runs == 2 and plan.seconds == pytest.approx(2 * each)
    assert plan.usd == pytest.approx(2 * each * 36 / 3600) and timed == ["resnet8_v1_pad"]
    assert "plan: 2 runs, 0.03 hours, $1.07; by 20 steps timed on this machine" in str(plan)


def test_four_networks_at_most_are_timed_and_others_take_their_evidence(timed):
    names = ("resnet8_v1_pad", "resnet8_v1_proj", "resnet20_tf", "resnet56_tf", "resnet44_v1_pad")
    plan = plans.make(planned(names))
    assert len(timed) == 4 and [row.at_most for row in plan.settings] == [False, *[True] * 4]
    assert plan.settings[1].epochs == 30 and "<=30" in str(plan)


def test_a_batch_size_takes_as_long_an_epoch(timed):
    plan = plans.make(grid.plan(samples.study()))
    small, same = plan.settings
    assert small.seconds == same.seconds and len(timed) == 1


def test_without_timing_the_plan_is_the_evidence_s(timed, monkeypatch):
    evidence = recipes.get("digits/resnet8").evidence[-1].seconds
    for plan in (plans.make(planned(), estimates=False), plans.make(planned(), elsewhere=True)):
        assert plan.seconds == 2 * evidence and not timed and "evidence" in str(plan)

    def refuse(*_):
        raise Refusal("--data_dir=none: does not exist")

    monkeypatch.setattr(plans.process, "take_sample", refuse)
    assert "(not timed: --data_dir=none: does not exist)" in str(plans.make(planned()))
