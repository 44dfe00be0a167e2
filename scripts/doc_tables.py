"""Writes the generated tables of README.md and docs/: results, published entries, runtimes, seeds.

.venv/bin/python scripts/doc_tables.py
"""

import re
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import ladder
import numpy as np

from dawnbench_tf import recipes
from dawnbench_tf.inference.runtimes import RUNTIMES
from dawnbench_tf.recipe.evidence import published_entries
from dawnbench_tf.recipes import reproductions

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs/measured"
TABLE = re.compile(r"(<!-- (\w+): scripts/doc_tables.py -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Returns path -> expected content of each document with a generated table."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/*.md")]}
    texts[ROOT / "README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")
    return {
        path: TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)
        for path, text in texts.items()
        if TABLE.search(text)
    }


def results() -> str:
    """Formats a row for each recipe that was measured: of the most runs, the earliest of these."""
    lines = ["| recipe | to | reached | time on the clock | score | hardware |"]
    lines.append("|---|---|---|---|---|---|")
    for recipe in recipes.rows().values():
        item = ladder.measured(recipe)
        if item is None:
            continue
        goal = f"{recipe.task_row.metric} {recipe.goal:g}"
        share = f"{item.reached} of {item.runs} run{'s' * (item.runs > 1)}"
        time = "never" if item.seconds is None else f"{item.seconds:g} s"
        score, where = f"{item.mean:g}", f"{item.machine}, {item.date}"
        where += f"; {item.note}" if item.note else ""
        if item.runs > 1:
            time, score = (
                f"{time}{', the median' * bool(item.seconds)}",
                f"{score} (sd {item.sd:g})",
            )
        lines.append(f"| `{recipe.name}` | {goal} | {share} | {time} | {score} | {where} |")
    return "\n".join(lines) + "\n"


def entries() -> str:
    """Formats a row for each published entry: what reproduces it."""
    table = reproductions.table()
    training, inference = (
        sum(bool(item.recipe) for entry, item in table.items() if phase in entry)
        for phase in ("/train/", "/inference/")
    )
    lines = [f"{training} of 69 training and {inference} of 49 inference entries have a recipe.\n"]
    lines += ["| entry | by | recipe | network | notes |", "|---|---|---|---|---|"]
    for entry, item in table.items():
        author = re.split(r"[:,(|]", published_entries()[entry]["author"])[0].strip()
        names = (f"`{name}`" if name else "" for name in (item.recipe, item.model))
        lines.append(f"| {entry} | {author} | {' | '.join(names)} | {item.note} |")
    return "\n".join(lines) + "\n"


def runtimes() -> str:
    """Formats a row for each inference runtime."""
    lines = ["| runtime | description | precisions |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {row.description} | {', '.join(row.precisions)} |"
        for name, row in RUNTIMES.items()
    ]
    return "\n".join(lines) + "\n"


def measured_rows(path: Path) -> list[dict[str, float]]:
    """Reads a table of docs/measured: seed, reached, epoch, score, seconds on and off the clock."""
    rows = ladder.csv_rows(path, delimiter="\t")
    return [{name: float(value) for name, value in row.items()} for row in rows]


def seeds(task: str) -> str:
    """Formats a row for each run of a task in docs/measured (from `dawnbench study report`)."""
    lines = ["| recipe | seed | | in epoch | score | s on the clock | s of evaluation, off it |"]
    lines.append("|---|--:|---|--:|--:|--:|--:|")
    for path in sorted(MEASURED.glob(f"{task}-*.tsv")):
        name = path.stem.replace("-", "/", 1)
        for row in measured_rows(path):
            seed, reached, *figures = (f"{value:g}" for value in row.values())
            verb = "reached" if reached == "1" else "missed"
            lines.append(f"| `{name}` | {seed} | {verb} | {' | '.join(figures)} |")
    return "\n".join(lines) + "\n"


FACTORS = {  # level of docs/measured/airbench_factors.toml: its description
    "none": "`airbench94_muon` for 3 epochs",
    "two-epochs": "2 epochs",
    "two-point-six-epochs": "2.6 epochs",
    "four-epochs": "4 epochs",
    "unwhitened": "a trained convolution in place of whitening",
    "random-flip": "random flips in place of alternating ones",
    "lookahead": "with lookahead, as in `airbench94`",
    "sgd-lookahead": "`airbench94`: SGD with lookahead, batch size 1,024",
    "sgd": "`airbench94` without lookahead",
    "batch-1000": "batch size 1,000, learning rate 0.17, momentum 0.7",
    "batch-500": "batch size 500, learning rate 0.12, momentum 0.85",
}
UNCHANGED = ("two-epochs", "two-point-six-epochs", "none", "four-epochs")  # by number of epochs


def factors() -> str:
    """Formats a row for each level: the epochs of Muon's recipe that its score corresponds to."""
    rows = ladder.csv_rows(MEASURED / "airbench_factors.csv")
    scores = {
        name: [float(row["score"]) for row in rows if row["level"] == name] for name in FACTORS
    }
    epochs = {row["level"]: float(row["epochs"]) for row in rows}
    curve = [fmean(scores[name]) for name in UNCHANGED], [epochs[name] for name in UNCHANGED]
    lines = ["| | top-1 | equal to epochs |", "|---|--:|--:|"]
    for name, description in FACTORS.items():
        equal = np.interp(fmean(scores[name]), *curve)
        runs = ", ".join(f"{score:.2f}" for score in scores[name])
        lines.append(f"| {description} | {runs} | {equal:.2f} |")
    return "\n".join(lines) + "\n"


AUTHORS = {  # recipe of docs/measured/gpus.csv: mean of its authors' runs, by them
    "airbench94_muon": "94.01",
    "hiverge94": "94.01",
    "airbench96": "96.03",
    "airbench96_faster": "96.00",
    "resnet9_10ep": "",
    "resnet9_24ep": "",
}


def gpu_seeds() -> str:
    """Formats a row for each recipe that was trained on a GPU."""
    lines = ["| recipe | runs | threshold | reached | mean of the scores | the authors' mean |"]
    lines.append("|---|--:|--:|--:|---|--:|")
    for name, authors in AUTHORS.items():
        rows = ladder.gpu_runs(f"cifar10/{name}")
        scores = [float(row["score"]) for row in rows]
        reached = sum(int(row["reached"]) for row in rows)
        spread = f" (sd {stdev(scores):.2f})" if len(rows) > 1 else ""
        figures = f"{len(rows)} | {rows[0]['goal']} | {reached} | {fmean(scores):.2f}{spread}"
        lines.append(f"| `{name}` | {figures} | {authors} |")
    return "\n".join(lines) + "\n"


def gpu_times() -> str:
    """Formats a row for each run that had a GPU to itself."""
    lines = [
        "| recipe | GPU | date | seed | score | s on the clock | training | compiling | "
        "evaluation, off the clock | images/s | TFLOP/s | of the peak |"
    ]
    lines.append("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for row in ladder.csv_rows(ladder.GPU_RUNS):
        if row["alone"] == "0":
            continue
        name = f"`{row['recipe'].removeprefix('cifar10/')}`"
        name += ", `--jit_compile`" if row["jit_compile"] == "1" else ""
        cells = [name, row["gpu"], row["date"], row["seed"], row["score"]]
        cells += [row[part] for part in ("seconds", "train", "compile", "evaluation")]
        cells += [f"{int(row['images_per_second']):,}", f"{float(row['tflops']):.0f}"]
        cells.append(f"{100 * float(row['share_of_peak']):.0f} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


TABLES = {
    "results": results,
    "entries": entries,
    "runtimes": runtimes,
    "ladder": ladder.table,
    "airbench_factors": factors,
    "gpu_seeds": gpu_seeds,
    "gpu_times": gpu_times,
    "cifar10_seeds": partial(seeds, "cifar10"),
    "imagenette_seeds": partial(seeds, "imagenette"),
}

if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content, encoding="utf-8")
