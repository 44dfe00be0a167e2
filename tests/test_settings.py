"""Fields hold their bounds and choices."""

from dataclasses import dataclass

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.settings import check, setting


@dataclass
class Sample:
    size: int = setting(2, "a size", low=1, high=4)
    kind: str = setting("a", "a kind", choices=("a", "b"))
    mode: str = setting("off", "a mode", choices=("off", "mirrored"))
    sizes: tuple[float, ...] = setting((), "sizes", low=0)
    maybe: float | None = setting(None, "perhaps", low=0)
    rate: float = setting(1.0, "a rate", above=0)
    free: int = 0


@pytest.mark.parametrize("good", [{}, {"size": 1}, {"size": 4}, {"sizes": (0.0,)}, {"maybe": 0}])
def test_what_is_within_bounds_passes(good):
    check(Sample(**good))


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({"size": 0}, "--size=0: should be at least 1"),
        ({"size": 5}, "--size=5: should be at most 4"),
        ({"size": float("nan")}, "--size=nan: should be a whole number"),
        ({"size": True}, "--size=True: should be a whole number"),
        ({"kind": None}, "--kind=None: should be text"),
        ({"sizes": 1.0}, "--sizes=1.0: should be a list of floats"),
        ({"maybe": float("inf")}, "--maybe=inf: should be a finite number"),
        ({"rate": 0.0}, "--rate=0.0: should be over 0"),
        ({"kind": "c"}, "--kind=c: should be one of a, b"),
        ({"mode": "of"}, "--mode=of: should be one of off, mirrored; did you mean off?"),
        ({"sizes": (1.0, -1.0)}, "--sizes=-1.0: should be at least 0"),
    ],
)
def test_what_is_not_is_named_by_its_flag(bad, line):
    with pytest.raises(Refusal) as refusal:
        check(Sample(**bad))
    assert str(refusal.value) == line
