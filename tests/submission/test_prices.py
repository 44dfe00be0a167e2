"""Prices equal those of the published entries."""

import datetime

import pytest

from dawnbench_tf.ranking import results
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission import prices


def implied():
    """Returns the price per hour of each published entry that has one."""
    for result in results.dawnbench_results():
        if result.usd is not None:
            yield result, result.usd_per_hour or result.usd / result.latency * 3_600_000


def test_instances_are_dated_and_have_a_price_and_a_source():
    for name, row in prices.instances().items():
        assert name == row.name and row.usd_per_hour > 0 and row.source and row.provider
        datetime.date.fromisoformat(row.date)


def test_the_price_of_an_instance_is_that_of_the_entry_it_is_from():
    paid = {result.name: price for result, price in implied()}
    sources = {name: row.source.split(";")[0] for name, row in prices.instances().items()}
    checked = [row for row in prices.instances().values() if sources[row.name] in paid]
    for row in checked:
        assert paid[sources[row.name]] == pytest.approx(row.usd_per_hour, rel=0.002), row
    old = [row for row in prices.instances().values() if row.date < "2021"]
    assert len(checked) == len(old) - 2  # two are corrected, and say so


@pytest.mark.parametrize(
    ("gpus", "marked", "last"),
    [
        (["Tesla V100-SXM2-16GB"], ["p3.2xlarge", "paperspace-v100"], "*: with the vCPUs"),
        ([], [], "none has the vCPUs"),
    ],
)
def test_instances_of_this_machine_s_size_come_first(monkeypatch, gpus, marked, last):
    monkeypatch.setattr(prices.machine, "cpus", lambda: 8)
    monkeypatch.setattr(prices.machine, "memory_gb", lambda: 60.0)
    monkeypatch.setattr(prices.machine, "gpus", lambda: gpus)
    _, *rows, line = prices.format_table().splitlines()
    assert len(rows) == len(prices.instances()) and line.startswith(last)
    assert [row.split()[1] for row in rows[: len(marked)]] == marked
    assert [row[0] for row in rows] == ["*"] * len(marked) + [" "] * (len(rows) - len(marked))


def test_a_priced_entry_on_machines_we_know_paid_for_all_of_them():
    count, odd = 0, set()
    for result, price in implied():
        if machine := prices.find_instance(result.hardware):
            count += 1
            due = prices.count_machines(result.hardware) * machine.usd_per_hour
            if price != pytest.approx(due, rel=0.05):
                odd.add(result.name)
    swapped = {"dawn_resnet152_b_4M60_ec2_tensorflow", "dawn_resnet152_b_8k80_ec2_mxnet"}
    assert count > 30 and odd == swapped


@pytest.mark.parametrize(
    ("name", "cpus", "memory", "gpus", "words"),
    [
        ("c5.2xlarge", 8, 15.3, [], None),
        ("c5.2xlarge", 2, 15.3, [], "has 8 vCPUs, this machine has 2; add --hardware if"),
        ("c5.2xlarge", 8, 64.0, [], "has 16 GB of memory, this machine has 64;"),
        ("c5.2xlarge", 8, 15.3, ["Tesla T4"], "has no GPU, this machine has 1 Tesla T4;"),
        ("p3.2xlarge", 8, 60.0, ["Tesla V100-SXM2-16GB"], None),
        ("p3.2xlarge", 8, 60.0, ["NVIDIA H100"], "has 1 V100, this machine has 1 NVIDIA H100;"),
        ("p3.2xlarge", 8, 60.0, [], "has 1 V100, this machine has no GPU;"),
        ("n1-standard-2-tpu-v2", 2, 7.5, [], None),
        ("g6e.xlarge", 4, 31.0, ["NVIDIA L40S"], None),
        ("g6.xlarge", 4, 15.3, ["NVIDIA L40S"], "has 1 L4, this machine has 1 NVIDIA L40S;"),
    ],
)
def test_the_price_is_of_a_machine_of_this_size(monkeypatch, name, cpus, memory, gpus, words):
    monkeypatch.setattr(prices.machine, "cpus", lambda: cpus)
    monkeypatch.setattr(prices.machine, "memory_gb", lambda: memory)
    monkeypatch.setattr(prices.machine, "gpus", lambda: gpus)
    if words:
        with pytest.raises(Refusal, match=words):
            prices.with_instance_price(Credits(instance=name))
    mine, plain = Credits(instance=name, hardware="mine"), Credits(instance=name)
    for credits in (mine,) if words else (mine, plain):
        assert prices.with_instance_price(credits).cost_per_hour > 0


@pytest.mark.parametrize(
    ("hardware", "name", "machines"),
    [
        ("128 nodes with Xeon / 36 Cores (Amazon EC2 [c5.18xlarge])", None, 128),
        ("p3.16xlarge", "p3.16xlarge", 1),
        ("4 x p3.2xlarge", "p3.2xlarge", 4),
        ("np3.2xlarge", None, 1),
        ("1 ecs.gn6e-c12g1.24xlarge (AlibabaCloud)", "ecs.gn6e-c12g1.24xlarge", 1),
        ("", None, 1),
        ("0 machines", None, 1),
    ],
)
def test_hardware_is_read_for_its_machines(hardware, name, machines):
    instance = prices.find_instance(hardware)
    assert (instance and instance.name) == name and prices.count_machines(hardware) == machines
