"""Files damaged at random: each reader refuses them in one line, or reads them unchanged.

A `Kind` is a type of file. Its trial damages and reads one file, and returns the error found or "".
"""

import contextlib
import io
import json
import pickle
import random
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import tensorflow as tf

from dawnbench_tf import entries, files, leaderboard, models, recipes, run_folder, runs, tasks
from dawnbench_tf.data import cifar10, dataset, squad
from dawnbench_tf.data.image_files import shard_writer, shards
from dawnbench_tf.data.questions import encoding, squad_json, vocabulary, word_vectors, wordpieces
from dawnbench_tf.machine import Machine
from dawnbench_tf.ranking import pages, results, tables
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.runs import Run, run_entry
from dawnbench_tf.studies import grid, grid_files, reports
from tests.data.image_files.conftest import tar
from tests.models.weights import test_berts as published
from tests.studies import samples

Trial = Callable[[random.Random], str]
LONGEST = 2.0  # seconds that a trial may take
VALUES = (
    b"null", b"[]", b"{}", b'""', b'"x"', b"true", b"-1", b"0", b"NaN", b"Infinity", b"1e400",
    b"1e306", b"9" * 400, b"9" * 5000, b'"\\ud800"', b'{"train":"x"}', b"[" * 3000, b"\xff\xfe",
)  # fmt: skip


class Kind(NamedTuple):
    """A type of file that is damaged; `trial` damages one and returns the error found, or ""."""

    name: str
    trial: Trial


def damaged(chosen: random.Random, content: bytes) -> bytes:
    """Returns content emptied, cut, with flipped bits, spliced, or with a value of another type."""
    offset = chosen.randrange(len(content) + 1)
    end = min(len(content), offset + chosen.choice((1, 4, 40, 400)))
    ways: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: content[:offset],
        lambda: _flipped(chosen, content),
        lambda: _flipped(chosen, content),
        lambda: content[:offset] + content[end:],
        lambda: content[:end] + content[offset:],
        lambda: content[:offset] + chosen.randbytes(end - offset) + content[end:],
        lambda: _retyped(chosen, content),
        lambda: chosen.choice(VALUES),
    ]
    return chosen.choice(ways)()


def _flipped(chosen, content):
    changed = bytearray(content)
    for _ in range(chosen.randint(1, 3)):
        changed[chosen.randrange(len(changed))] ^= 1 << chosen.randrange(8)
    return bytes(changed)


def _retyped(chosen, content):
    """Replaces one value after a colon or a sign of equality, or one cell."""
    offsets = [i + 1 for i, byte in enumerate(content) if byte in b":=\t"]
    if not offsets:
        return content
    offset = chosen.choice(offsets)
    ends = [i for mark in (b",", b"\n", b"}", b"\t") if (i := content.find(mark, offset)) >= 0]
    return content[:offset] + chosen.choice(VALUES) + content[min(ends, default=len(content)) :]


@contextlib.contextmanager
def _instead(chosen: random.Random, path: Path) -> Iterator[None]:
    """Damages a file inside the body."""
    content = path.read_bytes()
    path.write_bytes(damaged(chosen, content))
    try:
        yield
    finally:
        path.write_bytes(content)


@contextlib.contextmanager
def without_checksum(path: Path) -> Iterator[None]:
    """Removes a file's checksum inside the body: an earlier version, or a stranger, wrote it."""
    content = path.read_bytes()
    values = json.loads(content)
    del values[files.CHECKSUM]
    path.write_text(json.dumps(values, indent=1))
    try:
        yield
    finally:
        path.write_bytes(content)


def _outcome(read: Callable[[], Any]) -> tuple[Any, str]:
    """Returns a reader's value, or None if it refuses; and the error of its refusal, or ""."""
    begin = time.process_time()  # other work on the machine is not the reader's
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            value = read()
        except Refusal as refusal:
            text = str(refusal)
            value, wrong = None, "" if "\n" not in text else f"several lines: {text[:100]}"
        except Exception as error:  # what a user would see as a traceback
            value, wrong = None, f"{type(error).__name__}: {error}"[:200]
        else:
            wrong = ""
    took = time.process_time() - begin
    return value, wrong or (f"took {took:.1f} s" if took > LONGEST else "")


def kind_of_files(name: str, paths: list[Path], look: Callable[[Path], str]) -> Kind:
    """Damages one of these files; `look` reads it, and returns the error found in its value."""

    def trial(chosen):
        path = chosen.choice(paths)
        with _instead(chosen, path):
            other, wrong = _outcome(lambda: look(path))
        wrong = wrong or other or ""
        return f"{path.name}: {wrong}" if wrong else ""

    return Kind(name, trial)


# Runs.

METRIC = "top1Accuracy"
CLOCK = {"load": 1.0, "train": 20.0}


def _run_folder(home: Path) -> Run:
    """Writes the files of a run of two epochs, with random bytes for TensorFlow's checkpoints."""
    recipe = recipes.get("digits/resnet8")
    rows = [{"epoch": n, "hours": n / 100, METRIC: 40.0 + n} for n in (1, 2)]
    home.mkdir(parents=True)
    files.write_json(home / run_folder.RECIPE, {**recipe.values(), run_folder.REPLACED: []})
    files.write_json(home / run_folder.CLOCK, CLOCK)
    lines = [f"{row['epoch']}\t{row['hours']}\t{row[METRIC]}" for row in rows]
    (home / run_folder.ROWS).write_text("\n".join([f"epoch\thours\t{METRIC}", *lines]) + "\n")
    for epoch in (1, 2):
        folder = home / f"checkpoint-{epoch}"
        folder.mkdir()
        (folder / "variables.index").write_bytes(random.Random(epoch).randbytes(500))
        digest = files.digest(folder / "variables.index")
        state = {"rows": rows[:epoch], "step": 21 * epoch, "clock": {"train": 9.0 * epoch}}
        files.write_json(folder / run_folder.STATE, {**state, "files": {"variables.index": digest}})
    return Run(recipe, rows, CLOCK, home)


def run_folders(home: Path) -> Kind:
    """Each file of a run's folder."""
    folder, whole = home / "run", _run_folder(home / "run")
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    kept = run_folder.RunFolder(folder, whole.recipe)
    states = [files.read_json(path) for path in paths if path.name == run_folder.STATE]
    clocks = [CLOCK, *(state["clock"] for state in states)]

    def trial(chosen):
        path = chosen.choice(paths)
        if chosen.random() < 0.3 and path.suffix == ".json":
            return _earlier_version(chosen, path, folder, kept)
        with _instead(chosen, path):
            run_folder._read_owner.cache_clear()
            run, wrong = _outcome(lambda: runs.read(folder))
            newest, also_wrong = _outcome(kept.newest)
            clock, wrong_clock = _outcome(lambda: kept.read_clock(newest))
        if run is not None and run != whole:
            wrong = f"read as another run: {run}"
        if newest is not None and newest.state not in states:
            also_wrong = f"restored another state: {newest.state}"
        if newest is not None and clock not in clocks:
            wrong_clock = f"the clock is {clock}"
        wrong = wrong or also_wrong or wrong_clock
        return f"{path.name}: {wrong}" if wrong else ""

    return Kind("run folders", trial)


def _earlier_version(chosen, path, folder, kept):
    """Damages a file without a checksum: other values may be read, but each refusal is one line."""
    with without_checksum(path), _instead(chosen, path):
        looks = [_outcome(lambda: runs.read(folder)), _outcome(kept.newest)]
        looks.append(_outcome(lambda: kept.read_clock(looks[1][0])))
    return next((f"{path.name}, as of 0.1.0: {wrong}" for _, wrong in looks if wrong), "")


# Entries.

MACHINE = Machine("2 CPU", "2cpu", {"tensorflow": "2.20.0", "gitRevision": "none"})


def _ours(home: Path) -> None:
    """Writes a training entry and an inference entry."""
    recipe = recipes.get("cifar10/resnet56_tf")
    rows = [{"epoch": n, "hours": n / 7, METRIC: 93.0 + n} for n in (1.0, 2.0)]
    credits = Credits("Ada", "ada@example.org", "p3.2xlarge", "1v100", 3.06)
    run, options = Run(recipe, rows, CLOCK), RunOptions(credits=credits)
    run_entry.write(home, run_entry.training_entry(run, options, MACHINE, 100.0))
    facts = {"examples": 10_000, "runtime": "litert", "precision": "int8"}
    run_entry.write(home, run_entry.inference_entry(recipe, credits, MACHINE, 0.5, 94.5, facts))


def entry_files(home: Path) -> Kind:
    """An entry's two files: ours, with a checksum of the measurements, and others', without."""
    root = home / "entries"
    _ours(root)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    measured = {(r.hours, r.latency) for r in results.read_tree(root)[0]}

    def look(is_ours):
        violations = entries.check_tree(root)[1]
        collected, problems = results.read_tree(root, misses=True)
        mine = [replace(result, mine=True) for result in collected]
        rankings = tables.rank(mine)
        shown = [leaderboard.format_ranking(table, 5) for table in rankings]
        shown.append(leaderboard.format_unranked([r for r in mine if r.reasons]))
        for line in [*map(str, violations), *problems, *"\n".join(shown).splitlines()]:
            if not line.isprintable() or len(line) > 3000:
                return f"a line that is none: {line[:100]!r}"
        for table in rankings:
            for row in table.rows:
                task = tasks.RANKED[row.dataset]
                score = row.score is not None and task.threshold <= row.score <= task.highest
                if not score or not 0 < table.figure.value(row) < 1e12:
                    return f"ranked with {row.score}, {table.figure.value(row)}"
                if is_ours and (row.hours, row.latency) not in measured:
                    return f"ranked at {row.hours} h, {row.latency} ms"
        return (rankings, mine)

    def trial(chosen):
        path = chosen.choice(paths)
        is_ours = chosen.random() < 0.5
        others = {p: p.read_bytes() for p in paths}
        try:
            if not is_ours:
                for name in (p for p in paths if p.suffix == ".json"):
                    values = json.loads(others[name])
                    del values["misc"]["measuredSha256"]
                    name.write_text(json.dumps(values, indent=1))
            with _instead(chosen, path):
                looked, wrong = _outcome(lambda: look(is_ours))
                if isinstance(looked, str):
                    wrong = looked
                elif looked and looked[0] and chosen.random() < 0.01:
                    _, wrong = _outcome(lambda: pages.write(home / "site", *looked))
        finally:
            for name, content in others.items():
                name.write_bytes(content)
        return f"{path.name}: {wrong}" if wrong else ""

    return Kind("entries", trial)


# Data.

IMAGES = 4  # in a batch of the small archives here


def _batches() -> dict[str, bytes]:
    """Returns small batches of CIFAR-10 in both formats, by name."""
    numbers = np.random.default_rng(0)
    content = {}
    for name in cifar10._PYTHON:
        data = numbers.integers(0, 256, (IMAGES, 3072), np.uint8)
        labels = numbers.integers(0, 10, IMAGES).tolist()
        content[name] = pickle.dumps({"data": data, "labels": labels}, 2)
        records = (bytes([label]) + row.tobytes() for label, row in zip(labels, data, strict=True))
        content[f"{name}.bin"] = b"".join(records)
    return content


def archives(home: Path) -> Kind:
    """CIFAR-10's archives, in each compression."""
    batches, folder = _batches(), home / "archives"
    folder.mkdir()
    paths = []
    for form in ("gz", "xz", "bz2"):
        for names, kind in ((cifar10._PYTHON, "py"), (cifar10._BINARY, "bin")):
            path = folder / f"cifar-{kind}.tar.{form}"
            members = ((f"folder/{name}", batches[name]) for name in names)
            path.write_bytes(tar(*members, form=form))
            paths.append(path)

    def load(path):
        with mock.patch.object(cifar10, "_PER_BATCH", IMAGES):
            splits = cifar10.load(recipes.get("cifar10/resnet56_tf"), str(path))
        return [(split.images().tobytes(), split.labels.tobytes()) for split in splits[:2]]

    whole = {path: load(path) for path in paths}
    return kind_of_files(
        "archives", paths, lambda path: "" if load(path) == whole[path] else "other data"
    )


def batches(home: Path) -> Kind:
    """Pickled batches."""
    contents = [content for name, content in _batches().items() if not name.endswith(".bin")]

    def trial(chosen):
        content = damaged(chosen, chosen.choice(contents))
        return _outcome(lambda: cifar10.unpickle_arrays("batch", content))[1]

    return Kind("pickles", trial)


def _paragraph(n):
    answers = [{"text": f"18{n}", "answer_start": 44}]
    question = {"id": f"q{n}", "question": "When did Ada write?", "answers": answers}
    context = f"Ada lived in city {n}, and wrote \u00e9t\u00e9 there in 18{n}."
    return {"context": context, "qas": [question]}


PARAGRAPHS = [_paragraph(n) for n in range(10, 16)]
SQUAD = {"version": "1.1", "data": [{"title": "T", "paragraphs": PARAGRAPHS}]}


def texts(home: Path) -> Kind:
    """SQuAD's JSON."""
    content = json.dumps(SQUAD).encode()

    def read(changed):
        corpus = squad_json.parse("squad", changed)
        for text in [*corpus.contexts, *(q.text for q in corpus.questions)]:
            text.encode()
        return encoding.encode(corpus, {})

    def trial(chosen):
        changed = damaged(chosen, content)
        return _outcome(lambda: read(changed))[1]

    return Kind("SQuAD texts", trial)


def vectors(home: Path) -> Kind:
    """GloVe as text and as zip, a run's vocabulary, and the cache of tokens."""
    folder = home / "vectors"
    folder.mkdir()
    words = {f"w{n}" for n in range(8)}
    lines = [f"{word} {' '.join(['0.25'] * 100)}\n" for word in sorted(words)]
    text, zipped = folder / "glove.6B.100d.txt", folder / "glove.6B.zip"
    text.write_text("".join(lines))
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(text.name, "".join(lines))
    vocab = vocabulary.Vocabulary(["a"], ["b", "c"], ["d"])
    vocabulary.save(vocab, folder)
    corpus = squad_json.parse("squad", json.dumps(SQUAD).encode())
    types: dict[str, int] = {}
    splits = [encoding.encode(corpus, types) for _ in range(2)]
    cached = (splits[0], splits[1], list(types), {"ada": np.zeros(100, np.float32)})
    cache = folder / "cache.npz"
    squad._write_cache(cache, cached)
    whole = repr(squad._read_cache(cache))

    def look(path):
        if path is cache:
            tokenized = squad._read_cache(cache)
            return "" if tokenized is None or repr(tokenized) == whole else "another cache"
        if path.name == vocabulary.FILE:
            return "" if vocabulary.load(folder) == vocab else "other words"
        read = word_vectors.read(path, "glove.6B.100d", words)
        fits = all(v.shape == (100,) and np.isfinite(v).all() for v in read.values())
        whole_words = set(read) == words and all((v == 0.25).all() for v in read.values())
        return "" if fits and (path is text or whole_words) else "other vectors"

    return kind_of_files("word vectors", [text, zipped, folder / vocabulary.FILE, cache], look)


def image_shards(home: Path) -> Kind:
    """TFRecord shards of images, and their index."""
    folder, jpegs = home / "shards", [b"\xff\xd8\xff" + bytes([n] * 60) for n in range(6)]
    folder.mkdir()
    for number in range(2):
        with tf.io.TFRecordWriter(str(folder / f"train-{number:05}-of-00002")) as writer:
            for n in range(3 * number, 3 * number + 3):
                writer.write(shard_writer.make_record(jpegs[n], (8, 8), n, f"{n}.JPEG"))
    whole = shards.read(folder, "train")
    names = [name.decode() for name in whole.paths]

    def look(read):
        index = read()
        by_shard = [[], []]
        for n in range(len(index.labels)):
            by_shard[index.files[n]].append((int(index.labels[n]), index.raw(n)))
        return by_shard

    content = list(zip(range(6), jpegs, strict=True))
    wanted = [content[:3], content[3:]]

    def trial(chosen):
        path = chosen.choice([folder / names[0], folder / names[1], folder / "train.index.npz"])
        try:
            if path.suffix == ".npz":
                shards.write_index(whole, "train")
            with _instead(chosen, path):
                examples, wrong = _outcome(lambda: look(lambda: shards.read(folder, "train")))
        finally:
            (folder / "train.index.npz").unlink(missing_ok=True)
        if examples is not None and path.suffix == ".npz" and examples != wanted:
            wrong = "other images"
        if examples is not None and not all(map(_tells, examples, wanted)):
            wrong = "images that were not there"
        return f"{path.name}: {wrong}" if wrong else ""

    return Kind("image shards", trial)


def _tells(examples, wanted):
    """Whether a shard was read as written, or has complete records missing or added."""
    return examples == wanted or (len(examples) != len(wanted) and set(examples) <= set(wanted))


def berts(home: Path) -> Kind:
    """A vocabulary, safetensors, and a TensorFlow checkpoint's two files."""
    folder = home / "bert"
    folder.mkdir()
    pieces = wordpieces.from_words([f"w{n}" for n in range(30)])
    vocab, weights = folder / wordpieces.VOCABULARY, folder / "model.safetensors"
    vocab.write_text("\n".join(["[PAD]", "[unused0]", *pieces.trained]) + "\n")
    published.write(weights, published.hugging_face())
    published.checkpoint(folder / "bert_model.ckpt", published.google(published.hugging_face()))
    index = folder / "bert_model.ckpt.index"
    numbers = folder / "bert_model.ckpt.data-00000-of-00001"
    model = models.build("bert_tiny_span", **published.SMALL)
    recipe = recipes.get("squad/bert_tiny")
    shapes = [w.shape for w in model.get_weights()]

    def look(path):
        if path is vocab:
            read = wordpieces.read(vocab, cased=False)
            return "" if len(set(read.trained)) == len(read.trained) else "pieces twice"
        none = np.zeros(0)
        encoded = encoding.Encoded(*[none] * 3, pieces, *[none] * 5, form=None, pretrained=None)
        file = weights if path is weights else index
        dataset.from_splits(recipe, encoded._replace(pretrained=file)).adapt(model)
        return "" if [w.shape for w in model.get_weights()] == shapes else "other weights"

    return kind_of_files("published BERTs", [vocab, weights, index, numbers], look)


def toml_files(home: Path) -> Kind:
    """A study's grid, and a recipe's file."""
    own, recipe = home / "grid.toml", home / "recipe.toml"
    own.write_text(samples.GRID)
    recipe.write_text(samples.RECIPE)

    def look(path):
        grid.plan(grid_files.read(own)) if path is own else recipes.get(str(recipe)).values()

    return kind_of_files("TOML files", [own, recipe], look)


def studies(home: Path) -> Kind:
    """A damaged study is reported unchanged, or refused."""
    folder = home / "study"
    outcome = lambda run: samples.outcome(run.labels, run.seed)  # noqa: E731
    samples.write(folder, samples.study(trials=1), outcome)
    paths = [folder / "study.json", *sorted(folder.glob("*/*/outcome.json"))]

    def report():
        results = reports.load(folder)
        text = io.StringIO()
        reports.write_csv([results], text)
        return json.dumps(reports.values(results)), text.getvalue() + reports.format_text(results)

    whole = report()

    def trial(chosen):
        path = chosen.choice(paths)
        unsigned = chosen.random() < 0.5
        checked = without_checksum(path) if unsigned else contextlib.nullcontext()
        with checked, _instead(chosen, path):
            value, wrong = _outcome(report)
            signed = b'"sha256"' in path.read_bytes()
        if wrong or value is None:
            return wrong
        if any(sign in value[1] for sign in ("\x1b", "\u202e", "\0")):
            return "raw control characters"
        return "other results" if signed and value != whole else ""

    return Kind("studies", trial)


KINDS = (run_folders, entry_files, archives, batches, texts, vectors, image_shards)
KINDS += (berts, toml_files, studies)
