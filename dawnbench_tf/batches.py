"""Latency and throughput against batch size, as the original's time_inference had them."""

from pathlib import Path

from dawnbench_tf import files, latency, plots, runtimes, serving
from dawnbench_tf.settings import refuse

CALLS = 50  # of each batch size, at most


def sweep(found, runtime: str, numerics: str, chosen, folder: Path, progress) -> str:
    """Times batches of each of `chosen.batch_sizes`, each in a model made for just that size.

    Writes batch_sizes.tsv and batch_sizes.png to `folder`; returns the table for people.
    """
    if found.task.kind != "images":
        refuse("batch_sizes", chosen.batch_sizes[0], "questions are answered one at a time")
    rows = []
    for size in chosen.batch_sizes:
        progress(f"{runtime}: batches of {size}")
        served = serving.of_images(found, size)
        made = runtimes.build(runtime, served, numerics, chosen.threads)
        timed = latency.measure(made.call, served.examples[:CALLS], 1)
        rows.append((size, timed.percentile(50) * 1e3, size / timed.percentile(50)))
    progress("")
    lines = ["batch_size\tlatency_ms\texamples_per_second"]
    lines += ["\t".join(f"{value:.6g}" for value in row) for row in rows]
    files.make_folder(folder)
    files.write_whole(folder / "batch_sizes.tsv", "\n".join(lines) + "\n")
    plots.batch_sizes(
        rows, f"{found.recipe.model}, {runtime} {numerics}", folder / "batch_sizes.png"
    )
    head = "batch size   ms a batch   examples/s\n"
    return head + "\n".join(f"{a:10,} {b:12.4g} {c:12,.0f}" for a, b, c in rows)
