"""The budget of the suite."""

from collections import Counter

from tests import costs


def test_what_is_over_the_budget_is_named(monkeypatch):
    monkeypatch.setattr(costs, "_counts", {"a.py": Counter(forks=5), "b.py": Counter(forks=6)})
    budget = dict.fromkeys(costs.KINDS, 11)
    monkeypatch.setitem(costs.BUDGET, costs._part(), budget)
    assert costs._excess() == []
    budget["forks"] = 10
    assert costs._excess() == ["forks"]
