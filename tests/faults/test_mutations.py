"""Damaged files of every type are refused in one line, or read as they were written."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults import mutations


@pytest.fixture(scope="module", params=mutations.KINDS, ids=lambda kind: kind.__name__)
def kind(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("damaged"))


@settings(deadline=None, max_examples=30)  # scripts/test.sh --long tries 10,000
@given(st.integers(0, 2**32))
def test_a_damaged_file_is_told_or_harmless(kind, seed):
    assert kind.trial(random.Random(seed)) == ""
