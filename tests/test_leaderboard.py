"""The command `leaderboard`: tables, pages and plots, with a run of one's own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dawnbench_tf import leaderboard
from dawnbench_tf.ranking import plots, results
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission import source
from tests import screen
from tests.ranking.test_results import write
from tests.test_entries import HEAD, put

PUBLISHED = Path(__file__).parent / "fixtures/published"


def run(*flags, cwd=None):
    command = [sys.executable, "-m", "dawnbench_tf.leaderboard", *map(str, flags)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def test_your_run_is_marked_and_ranked(tmp_path):
    write(tmp_path, HEAD + "1\t0.001\t95\n")
    done = run(tmp_path, "--dataset=CIFAR10", "--top=1")
    assert done.returncode == 0, done.stderr
    assert f"your a b é in {tmp_path.name} would rank 1 of 32" in done.stdout
    _, head, first, *_ = done.stdout.splitlines()
    assert head.split()[:3] == ["rank", "time", "model"]
    assert first.startswith("*   1       0:00:04")  # 3.6 s, rounded up


def test_a_program_gets_tables_and_a_refusal(tmp_path):
    write(tmp_path, HEAD + "1\t0.001\t95\n")
    ranking = leaderboard.rank(str(tmp_path), dataset="Cifar10")  # in any case
    assert [table.title for table in ranking.tables] == ["CIFAR10"] * 4
    assert ranking.tables[0].rows[0].mine and len(ranking.tables[0].rows) == 32
    assert not ranking.unranked
    with pytest.raises(Refusal, match="--dataset=CIFAR-10: should be one of ImageNet, CIFAR10"):
        leaderboard.rank(dataset="CIFAR-10")
    with pytest.raises(Refusal, match="--until=2020: should be a date"):
        leaderboard.rank(until="2020")


def test_runs_are_told_apart_by_their_folders_and_ranked_once(tmp_path):
    for name, hours in (("first", 0.001), ("second", 0.002)):
        write(tmp_path / name, f"{HEAD}1\t{hours}\t95\n")
    # A copy, as `entries package` makes it, is the same run.
    write(tmp_path / "packaged", HEAD + "1\t0.001\t95\n", timestamp="2020-01-01", author="I")
    folders = (tmp_path / "first", tmp_path / "first", tmp_path, tmp_path / "second")
    done = run(*folders, "--dataset=CIFAR10", "--top=1")
    assert done.stdout.count("in first would rank") == done.stdout.count("in second would") == 2
    rows = [line for line in done.stdout.splitlines() if line.startswith("*")]
    assert {row.split()[-1] for row in rows} == {"first", "second"} and len(rows) == 4
    assert f"left out: 2 of {tmp_path}, given or published already" in done.stderr
    write(tmp_path / "run", HEAD + "1\t0.003\t95\n")
    (tmp_path / "run/run.json").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/linked").symlink_to(tmp_path / "run")  # on another disk, say
    (tmp_path / "run/itself").symlink_to(tmp_path / "run")
    assert len([*source.find(tmp_path / "run", [])]) == 2
    (row,) = (r for r in leaderboard.rank(tmp_path / "tree", "CIFAR10").tables[0].rows if r.mine)
    assert row.folder == "linked"
    for name, price in (("free", None), ("priced", 3.0), ("corrected", 2.0)):  # of packages
        write(tmp_path / name, HEAD + "1\t0.004\t95\n", costPerHour=price)
    paths = [tmp_path / name for name in ("free", "priced", "corrected", "free")]
    time, cost, *_ = leaderboard.rank(paths, "CIFAR10").tables
    mine = [row.folder for table in (time, cost) for row in table.rows if row.mine]
    assert mine == ["corrected"] * 2


def test_a_run_s_curve_is_drawn_beside_an_entry_s(tmp_path):
    write(tmp_path / "mine", HEAD + "1\t0.001\t80\n2\t0.002\t95\n")
    names = (tmp_path / "mine", "fastai_pytorch")  # of which ImageNet has one too
    leaderboard.draw_curves(names, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "CIFAR10: accuracy over time" in text and text.count("<!-- yours, mine: ") == 1
    with pytest.raises(Refusal, match="fastai_pytorh: is no folder .* mean fastai_pytorch?"):
        leaderboard.draw_curves([tmp_path / "mine", "fastai_pytorh"], tmp_path / "a.svg")
    names = (tmp_path / "mine", "alibabacloud_resnet50_gn6e_16_machine_tensorflow")
    with pytest.raises(Refusal, match="--curve=.*: needs training results of one data set; .* CI"):
        leaderboard.draw_curves(names, tmp_path / "b.svg")
    assert not (tmp_path / "b.svg").exists()
    leaderboard.draw_curves("fastai_pytorch", tmp_path / "c.svg", "ImageNet")
    assert "ImageNet: accuracy over time" in (tmp_path / "c.svg").read_text()
    with pytest.raises(Refusal, match="--json=true: is for tables, which --curve does not print"):
        leaderboard.main(leaderboard.Options(curve="d.svg", json=True), [])
    with pytest.raises(Refusal, match="--curve=d.svg: needs folders of runs or names of"):
        leaderboard.main(leaderboard.Options(curve="d.svg"), [])


def test_a_curve_far_below_the_threshold_is_not_upside_down(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(plots.files, "save_figure", lambda figure, _: figures.append(figure))
    write(tmp_path, HEAD + "1\t0.001\t10\n2\t0.002\t31\n")
    leaderboard.draw_curves([tmp_path], tmp_path / "a.png")
    (axes,) = figures[0].axes
    bottom, top = axes.get_ylim()
    assert bottom < 31 < 94 < top <= 100


def test_runs_of_a_study_are_named_by_setting_and_seed(tmp_path):
    for seed in (0, 1):
        write(tmp_path / f"study/batch_size=64/seed-{seed}/run", f"{HEAD}1\t{1 + seed}e-3\t95\n")
    ranked = leaderboard.rank(tmp_path / "study", "CIFAR10").tables[0].rows
    assert [row.folder for row in ranked[:2]] == ["batch_size=64/seed-0", "batch_size=64/seed-1"]


def test_runs_of_another_data_set_and_published_entries_are_left_out_with_a_line(tmp_path):
    write(tmp_path / "mine", HEAD + "1\t0.001\t95\n")
    home = tmp_path / "tree/SQuAD/train"
    home.mkdir(parents=True)
    for file in PUBLISHED.glob("dawn_drqa_1k80*"):
        shutil.copy(file, home)
    done = run(tmp_path / "mine", tmp_path / "tree", "--dataset=SQuAD")
    assert (done.returncode, done.stdout) == (0, run("--dataset=SQuAD").stdout)
    published, another = done.stderr.splitlines()
    assert published == f"left out: 1 of {tmp_path}/tree, given or published already"
    assert another == "left out: 1 of yours, of CIFAR10 and not of SQuAD"


def test_a_run_that_is_named_as_a_published_entry_is_ranked(tmp_path):
    name = next(r.name for r in results.dawnbench_results() if r.dataset == "CIFAR10" and r.hours)
    put(tmp_path, HEAD + "1\t0.001\t95\n", name=name)
    first = leaderboard.rank(tmp_path, "CIFAR10").tables[0].rows[0]
    assert (first.name, first.mine) == (name, True)


def test_tables_fit_the_terminal(tmp_path):
    write(tmp_path, HEAD + "1\t0.001\t95\n", model="\u4e2d" * 60)
    command = [sys.executable, "-m", "dawnbench_tf.leaderboard", str(tmp_path), "--dataset=CIFAR10"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    status, lines = screen.run(command, 100, env=environment)
    rows = [line for line in lines if line[5:7] == "  " and line[:5].strip(" *").isdigit()]
    assert status == 0 and len(rows) > 30 and "..." in rows[0]
    assert len({len(line.partition(" 20")[0]) for line in rows if "\u4e2d" not in line}) == 1


def test_at_80_columns_a_run_of_one_s_own_has_recipe_folder_and_hardware(tmp_path):
    write(tmp_path, HEAD + "1\t0.001\t95\n", misc={"recipe": {"name": "own/mine"}})
    command = [sys.executable, "-m", "dawnbench_tf.leaderboard", str(tmp_path)]
    status, lines = screen.run(command, 80)
    assert status == 0 and lines[0].strip() == "CIFAR10, training time"
    own, below = lines[2:4]
    assert own.startswith("*   1") and "  own/mine  " in own
    assert below.split(", ")[0].strip() == tmp_path.name[:56] and max(map(len, lines)) <= 80
    for columns in (40, 60, 77):
        text = leaderboard.format_ranking(leaderboard.rank(dataset="CIFAR10").tables[0], 3, columns)
        assert "0:00:10  Custom Resn" in text and max(map(len, text.splitlines())) <= columns
    with pytest.raises(Refusal, match="a path is empty"):
        leaderboard.rank("")


def test_one_s_own_is_ranked_among_the_published_at_another_threshold(tmp_path):
    write(tmp_path)
    ranking = leaderboard.rank(tmp_path, "CIFAR10", threshold=94.5)
    assert [len(table.rows) for table in ranking.tables] == [9, 7, 7, 5]  # counted by hand
    rows = [row for table in ranking.tables for row in table.rows]
    assert all(row.score >= 94.5 and not row.mine for row in rows)
    (row,) = ranking.unranked
    assert row.mine and row.reasons == ("top1Accuracy never reached 94.5; its best is 94",)


def test_tables_as_data_are_all_of_stdout(tmp_path, capsys):
    site = str(tmp_path / "site")
    leaderboard.main(leaderboard.Options(json=True, html=site, dataset="SQuAD"), [])
    output, errors = capsys.readouterr()
    assert len(json.loads(output)) == 4 and errors == f"{site}/index.html\n"
    with pytest.raises(Refusal, match="no entry is left to rank; name folders with digits, a"):
        leaderboard.rank(dataset="digits")
    with pytest.raises(Refusal, match="--csv=true: and --json are two forms of the tables"):
        leaderboard.main(leaderboard.Options(json=True, csv=True), [])


def test_until_threshold_and_csv(tmp_path, capsys):
    write(tmp_path / "late", HEAD + "1\t0.001\t95\n", timestamp="2020-01-02")
    early = leaderboard.rank(tmp_path / "late", until="2017-12-31").results
    assert capsys.readouterr().err == "left out: 1 of yours, later than 2017-12-31\n"
    assert all(row.date <= "2017-12-31" for row in early)
    (day,) = {row.date for row in early if row.date > "2017-12-01"}
    assert len(leaderboard.rank(until=day).results) == len(early)  # the day itself counts
    write(tmp_path / "named", model="=1+1")
    done = run(tmp_path / "named", "--dataset=CIFAR10", "--threshold=93", "--csv")
    header, first, *_ = done.stdout.splitlines()
    assert header.startswith("table,rank,figure,dataset,phase,name")
    rows = [line for line in done.stdout.splitlines() if ",'=1+1," in line]
    assert [row.split(",")[0] for row in rows] == ["training time", "training cost"]
    assert first.startswith("training time,1,0.00")


def test_bad_input_is_refused_in_a_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "pages").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "pages/entries").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    for folders, options, words in (
        (["nowhere"], {}, "nowhere: is no folder; should be an entry tree"),
        (["."], {}, ".: holds no entry; should hold DATASET/train/NAME.json or such"),
        ([], {"threshold": 93.0}, "--threshold=93.0: needs --dataset"),
        ([], {"dataset": "SQuAD", "threshold": 1.0}, "no entry is left to rank; name folders wi"),
        ([], {"html": "file/site"}, "file/site/entries: is a file or inside one; should be a fo"),
        ([], {"html": "pages"}, "pages/entries: is a link"),
        ([], {"plot": "a.gif"}, "--plot=a.gif: should end in one of .png"),
        ([], {"top": 0}, "--top=0: should be at least 1"),
    ):
        with pytest.raises(Refusal, match=words):
            leaderboard.main(leaderboard.Options(**options), folders)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_the_rules_refuse_is_in_no_table_and_told(tmp_path):
    """Each of these entries would rank first if it were accepted."""
    rows = {"negative": "-5\t95", "perfect": "0.001\t1e9", "missed": "0.001\t93"}
    for name, row in {**rows, "good": "0.001\t95"}.items():
        write(tmp_path / name, f"{HEAD}1\t{row}\n", model=name)
    write(tmp_path / "paid", HEAD + "1\t0.001\t95\n", model="paid", costPerHour=-3)
    done = run(tmp_path, "--dataset=CIFAR10", "--json")
    rankings = {table["table"]: table["rows"] for table in json.loads(done.stdout)}
    ranked = {row["model"] for name in rankings for row in rankings[name] if row["mine"]}
    reasons = {row["model"]: row["reasons"] for row in rankings["not ranked"]}
    assert ranked - set(reasons) == {"good"}
    assert reasons == {
        "negative": ["hours is -5; should be 0 or more"],
        "perfect": ["1e+09 should be percent, 0 to 100"],
        "missed": ["top1Accuracy never reached 94; its best is 93"],
        "paid": ["costPerHour is -3; should be above 0"],
    }
    assert rankings["training time"][0]["model"] == "good"


def test_a_miss_is_ranked_at_a_threshold_that_it_reached(tmp_path):
    write(tmp_path / "not_an_entry", HEAD + "1\t0.001\t60\n2\t0.002\t70\n")
    ranking = leaderboard.rank(tmp_path, threshold=60)  # the data set is the run's own
    assert any(row.mine for row in ranking.tables[0].rows) and not ranking.unranked


def test_inference_below_the_threshold_is_not_ranked(tmp_path):
    figures = {"phase": "inference", "latency": 0.001}
    for name, accuracy in (("low", 10.0), ("high", 94.6)):
        put(tmp_path, name=name, model=name, top1Accuracy=accuracy, **figures)
    done = run(tmp_path, "--dataset=CIFAR10")
    assert f"your high in {tmp_path.name} would rank 1 of 22" in done.stdout
    reason = "CIFAR10 inference: top1Accuracy is 10; should be at least 94"
    assert f"your low in {tmp_path.name}, {reason}" in done.stdout
    for threshold, names in ((94.6, {"low"}), (94.7, {"low", "high"})):
        unranked = leaderboard.rank(tmp_path, "CIFAR10", threshold=threshold).unranked
        assert {row.name for row in unranked} == names
    put(tmp_path / "package", name="high", cost=2e-6, top1Accuracy=94.6, **figures)
    collected = leaderboard.collect([tmp_path])
    assert [row.usd for row in collected if row.mine] == [2e-6, None]


@pytest.mark.parametrize("name", ["leaderboard", "doctor --nosteps"])
def test_a_full_disk_is_one_line(name):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", *f"dawnbench_tf.{name}".split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    ending = ": stdout can't be written (No space left on device)\n"
    assert done.stderr.endswith(ending) and done.stderr.count("\n") <= 2  # doctor says it is busy


def test_pages_and_pictures_are_written(tmp_path):
    write(tmp_path / "run")
    flags = ("--html=site", "--plot=all.png", "--until=2019-12-31")
    done = run(tmp_path / "run", *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "site/index.html\nall.png\n")
    assert (tmp_path / "all.png").stat().st_size > 10_000
    assert len(list((tmp_path / "site/entries").iterdir())) == 111 + 1


def test_rows_of_one_s_own_are_bounded_and_a_future_date_is_no_rank(tmp_path):
    for number in range(8):
        write(tmp_path / str(number), HEAD + f"1\t{2 + number}\t95\n")
    done = run(tmp_path, *(tmp_path / str(n) for n in range(8)), "--dataset=CIFAR10", "--top=3")
    training = done.stdout.split("\n\n")[0]
    assert training.count("\n*") == 3 and "  5 more of your own: --top=8" in training
    write(tmp_path / "0", HEAD + "1\t2\t95\n", timestamp="2999-01-01")
    (row,) = leaderboard.rank(tmp_path / "0", "CIFAR10").unranked
    assert row.reasons == ("dated in the future, 2999-01-01",)
