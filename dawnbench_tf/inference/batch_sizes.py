"""Latency and throughput against batch size, as the original's time_inference had them."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from dawnbench_tf import files
from dawnbench_tf.inference import latency, runtimes, serving
from dawnbench_tf.inference.serving import Serving

CALLS = 50  # of each batch size, at most
Row = tuple[int, float, float]  # batch size, milliseconds of a batch, examples a second


def sweep(
    loaded: Serving,
    runtime: str,
    precision: str,
    threads: int,
    batch_sizes: tuple[int, ...],
    progress: Callable[[str], None],
) -> list[Row]:
    """Times batches of each size, each in a model made for just that size.

    Args:
      loaded: the run, of images.
      runtime, precision, threads: how it is run.
      batch_sizes: to time.
      progress: told what is being done.

    Returns:
      For each size the median milliseconds of a batch, and examples a second.

    Raises:
      Refusal: the runtime can't run batches of a size.
    """
    rows = []
    for size in batch_sizes:
        progress(f"{runtime}: batches of {size}")
        served = serving.in_batches(loaded.served, size, CALLS)
        built = runtimes.build(runtime, served, precision, threads)
        median = latency.measure(
            built.call, served.examples, 1, warm_up_seconds=latency.BRIEFLY
        ).percentile(50)
        rows.append((size, median * 1e3, size / median))
    return rows


def table(rows: list[Row]) -> str:
    """All sizes, for people."""
    head = "batch size   ms a batch   examples/s\n"
    return head + "\n".join(f"{a:10,} {b:12.4g} {c:12,.0f}" for a, b, c in rows)


def write(rows: list[Row], title: str, folder: Path) -> None:
    """Writes batch_sizes.tsv and batch_sizes.png. Raises Refusal if that can't be done."""
    lines = ["batch_size\tlatency_ms\texamples_per_second"]
    lines += ["\t".join(f"{value:.6g}" for value in row) for row in rows]
    files.make_folder(folder)
    files.write_whole(folder / "batch_sizes.tsv", "\n".join(lines) + "\n")
    files.save_figure(_figure(rows, title), folder / "batch_sizes.png")


def _figure(rows, title):
    sizes, milliseconds, throughput = zip(*rows, strict=True)
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    of_batch, of_second = figure.subplots(1, 2)
    of_batch.plot(sizes, milliseconds, "o-", color="#0b6fa4", markersize=4)
    of_batch.set(yscale="log", ylabel="ms for a batch")
    of_second.plot(sizes, throughput, "o-", color="#0b6fa4", markersize=4)
    of_second.set(ylim=(0, 1.1 * max(throughput)), ylabel="examples/s")
    for axes in (of_batch, of_second):
        axes.set(xscale="log", xlabel="batch size")
        axes.set_xticks(sizes, [f"{size}" for size in sizes])
        axes.xaxis.minorticks_off()
        axes.grid(alpha=0.25)
    figure.suptitle(title)
    return figure
