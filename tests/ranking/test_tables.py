"""The twelve tables of the published results, ties, records."""

from dawnbench_tf.ranking import results, tables
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.tasks import TASKS


def by_name():
    return {(t.dataset, t.figure.name): t for t in tables.rank(results.dawnbench_results())}


def test_there_are_twelve_tables_and_no_entry_is_lost():
    ranked = by_name()
    assert len(ranked) == 12
    sizes = [len(ranked["CIFAR10", figure.name].rows) for figure in tables.FIGURES]
    assert sizes == [31, 20, 21, 13]
    for table in ranked.values():
        figures = [table.figure.value(row) for row in table.rows]
        assert figures == sorted(figures), table.figure.name


def test_known_ranks():
    tables = by_name()
    for dataset, name, rank, written, model in (  # by hand from the published TSVs
        ("SQuAD", "training time", 1, "0:18:46", "FastFusionNet"),
        ("SQuAD", "training time", 2, "0:27:07", "DrQA"),
        ("SQuAD", "training time", 3, "0:45:56", "QANet"),
        ("SQuAD", "training cost", 1, "$0.57", "DrQA"),
        ("SQuAD", "inference latency", 1, "7.5790 ms", "PA-Occam-Bert"),
        ("SQuAD", "inference cost of 10,000", 1, "$0.1481", "BiDAF"),
        ("CIFAR10", "training time", 1, "0:00:10", "Custom Resnet 9"),
        ("ImageNet", "training time", 1, "0:02:38", "ResNet50-v1.5"),
        ("ImageNet", "training cost", 1, "$7.43", "ResNet50-v1.5"),
    ):
        figure, row = tables[dataset, name].figure, tables[dataset, name].rows[rank - 1]
        assert (figure.format(figure.value(row)), row.model) == (written, model)


def result(name, hours, date="2020-01-01", **changes):
    facts = dict.fromkeys(("author", "model", "framework", "hardware", "url"), "x")
    facts |= dict.fromkeys(("latency", "usd", "usd_per_hour"))
    facts |= {"task": TASKS["cifar10"], "dataset": "CIFAR10", "phase": "train", "score": 94.0}
    return Result(**{**facts, "name": name, "hours": hours, "date": date, **changes})


def test_of_equals_the_earlier_date_ranks_first_then_the_name():
    rows = [result("c", 1), result("b", 1), result("a", 1, "2020-01-02"), result("d", 0.5)]
    for order in (rows, rows[::-1]):
        (table,) = tables.rank(order)
        assert [row.name for row in table.rows] == ["d", "b", "c", "a"]


def test_the_record_is_what_was_the_best_on_its_day():
    days = [("a", 9, "2018-01-01"), ("b", 9, "2018-02-01"), ("c", 5, "2018-03-01")]
    days += [("d", 7, "2018-03-01"), ("e", 6, "2019-01-01"), ("f", 1, "2020-01-01")]
    (table,) = tables.rank([result(*day) for day in days[::-1]])
    assert [row.name for row in tables.records(table)] == ["a", "c", "f"]
