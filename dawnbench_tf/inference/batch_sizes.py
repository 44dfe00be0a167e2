"""Latency and throughput by batch size, as in DAWNBench's original time_inference."""

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from dawnbench_tf import files, terminal
from dawnbench_tf.inference import latency, runtimes, serving
from dawnbench_tf.inference.serving import Serving

CALLS = 50  # batches timed for each batch size, at most
Row = tuple[int, float, float]  # batch size, milliseconds per batch, examples per second


def sweep(
    loaded: Serving, runtime: str, precision: str, threads: int, batch_sizes: tuple[int, ...]
) -> Iterator[Row]:
    """Times batches of each size, with a model built for that size; yields a Row for each."""
    for size in batch_sizes:
        terminal.status(f"{runtime}: batches of {size}")
        served = serving.with_batches(loaded.served, size, CALLS)
        built = runtimes.build(runtime, served, precision, threads)
        median = latency.measure(
            built.call, served.examples, 1, warm_up_seconds=latency.SHORT_WARM_UP_SECONDS
        ).percentile(50)
        yield size, median * 1e3, size / median


def format_table(rows: list[Row]) -> str:
    """Formats the rows as a text table."""
    head = "batch size   ms a batch   examples/s\n"
    return head + "\n".join(f"{a:10,} {b:12.4g} {c:12,.0f}" for a, b, c in rows)


def write(rows: list[Row], title: str, folder: Path) -> None:
    """Writes batch_sizes.tsv and batch_sizes.png. Raises Refusal if they can't be written."""
    lines = ["batch_size\tlatency_ms\texamples_per_second"]
    lines += ["\t".join(f"{value:.6g}" for value in row) for row in rows]
    files.write_whole(folder / "batch_sizes.tsv", "\n".join(lines) + "\n")
    sizes, milliseconds, throughput = zip(*rows, strict=True)
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    latency_axes, throughput_axes = figure.subplots(1, 2)
    latency_axes.plot(sizes, milliseconds, "o-", color="#0b6fa4", markersize=4)
    latency_axes.set(yscale="log", ylabel="ms for a batch")
    latency_axes.yaxis.set_major_formatter("{x:g}")
    in_a_decade = max(milliseconds) < 10 * min(milliseconds)
    latency_axes.yaxis.set_minor_formatter("{x:g}" if in_a_decade else "")
    throughput_axes.plot(sizes, throughput, "o-", color="#0b6fa4", markersize=4)
    throughput_axes.set(ylim=(0, 1.1 * max(throughput)), ylabel="examples/s")
    for axes in (latency_axes, throughput_axes):
        axes.set(xscale="log", xlabel="batch size")
        axes.set_xticks(sizes, [f"{size}" for size in sizes])
        axes.xaxis.minorticks_off()
        axes.grid(alpha=0.25)
    figure.suptitle(title)
    files.save_figure(figure, folder / "batch_sizes.png")
