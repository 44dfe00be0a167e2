"""The parts of the clock sum to the wall, whatever happens."""

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from dawnbench_tf.clock import DAWNBENCH, Clock

PARTS = st.sampled_from(["import", "load", "build", "train", "eval", "checkpoint"])


class Seconds:
    """A time source that a test moves."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


@given(st.lists(st.tuples(PARTS, st.integers(0, 1000)), max_size=30))
def test_parts_sum_to_the_wall(switches):
    seconds = Seconds(100.0)
    clock = Clock(now=seconds)
    for part, spent in switches:
        clock.switch(part)
        seconds.now += spent
    assert sum(clock.parts().values()) == sum(spent for _, spent in switches)


def test_a_part_that_fails_still_ends():
    seconds = Seconds(100.0)
    clock = Clock(now=seconds)
    with suppress(RuntimeError), clock.part("eval"):
        seconds.now += 3
        raise RuntimeError
    seconds.now += 4
    assert clock.parts() == {"other": 4.0, "eval": 3.0}


def test_evaluation_checkpoints_and_imports_are_off_the_clock():
    parts = {"import": 9.0, "load": 1.0, "build": 2.0, "compile": 4.0, "train": 8.0}
    clock = Clock({**parts, "eval": 16.0, "checkpoint": 32.0, "other": 64.0}, now=lambda: 0.0)
    assert clock.hours() == 15 / 3600  # load + build + compile + train: entries issues 9, 12, 21
    assert clock.hours(DAWNBENCH | {"eval"}) == 31 / 3600


def test_clock_carries_on_after_resume():
    seconds = Seconds(100.0)
    before = Clock(now=seconds)
    with before.part("train"):
        seconds.now += 7
    after = Clock(now=seconds)
    after.carry_on(json.loads(json.dumps(before.parts())))
    with after.part("train"):
        seconds.now += 2
    assert after.parts()["train"] == 9.0
