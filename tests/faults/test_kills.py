"""A run that is killed, or fails, at any file operation ends with unchanged results."""

import random
from itertools import cycle

import pytest

from tests.faults import kills, studies

# A process killed before it opens or syncs a file leaves what it would have left before that; a
# file that cannot be opened, synced or renamed is refused where one that cannot be written is.
TELLING = {"kill": ("rename",), "error": ("fsync .checkpoint",)}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("fault", ["kill", "error"])
def test_at_each_file_operation(tmp_path, fault, every):
    with kills.victims(tmp_path) as victims:
        whole = victims.train("whole")
        assert whole.status == 3, whole.said
        wanted, numbers = victims.left("whole"), kills.points(whole.operations)
        assert len(numbers) > 50
        if not every:
            numbers = kills.first_of_each(numbers, whole.operations, TELLING[fault])
            assert len(numbers) == 1
        wrong = []
        for operation, error in zip(numbers, cycle(kills.ERRORS), strict=False):
            name = f"{fault}-{operation}"
            if fault == "kill":
                text = kills.killed(victims, name, wanted, [operation])
            else:
                text = kills.failed(victims, name, wanted, operation, error)
            if text:
                wrong.append(f"{operation}, {whole.operations[operation]}: {text}")
    print(f"{fault}s tried: {len(numbers)}, held: {len(numbers) - len(wrong)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_memory_and_open_files_are_flat_over_200_epochs(tmp_path):
    with kills.victims(tmp_path) as victims:
        long = victims.train("long", epochs=200)
    assert long.status == 3 and len(long.samples) == 200, long.said[-500:]
    memory, handles = zip(*long.samples, strict=True)
    assert max(handles[20:]) == handles[20]
    growth = min(memory[-20:]) - min(memory[40:60])
    assert growth < 20 * 2**20, f"{growth / 2**20:.1f} MiB over 140 epochs"


def test_a_study_killed_with_and_without_its_runs_runs_nothing_twice(tmp_path):
    studies.prepare(tmp_path)
    for seed in range(2):
        assert not studies.killed(tmp_path, random.Random(seed), deaths=2)
