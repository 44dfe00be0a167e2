"""Converts DAWNBench's entry tree to published.tsv and ranking/published_curves.tsv.

.venv/bin/python scripts/published_results.py ENTRY_TREE
"""

import csv
import sys
from pathlib import Path

from dawnbench_tf.ranking import results
from dawnbench_tf.recipe import evidence


def main(tree: str) -> int:
    """Reads the tree and writes both tables; writes nothing if a file can't be read."""
    entries, problems = results.read_tree(Path(tree))
    if problems or not entries:
        print("\n".join(problems) or f"{tree}: holds no entry", file=sys.stderr)
        return 1
    rows = ([getattr(row, name) for name in results.columns()] for row in entries)
    write(evidence.PUBLISHED, results.columns(), rows)
    points = ((row.dataset, row.name, *point) for row in entries for point in row.curve)
    write(results.CURVES, ["dataset", "name", "hours", "score"], points)
    print(f"{len(entries)} results, {sum(len(row.curve) for row in entries)} evaluations")
    return 0


def write(path: Path, columns, rows) -> None:
    """Writes a TSV table; None becomes an empty cell."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(["" if value is None else value for value in row] for row in rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
