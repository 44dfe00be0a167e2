"""Writes dawnbench_tf/published.tsv from the tree of published entries.

.venv/bin/python scripts/published_results.py ENTRY_TREE
"""

import csv
import sys
from pathlib import Path

from dawnbench_tf import results


def main(tree: str) -> int:
    """Reads the whole tree; writes nothing if a file of it can't be read."""
    found, problems = results.read_tree(Path(tree))
    if problems or not found:
        print("\n".join(problems) or f"{tree}: holds no entry", file=sys.stderr)
        return 1
    with open(results.PUBLISHED, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(results.columns())
        for row in found:
            values = (getattr(row, name) for name in results.columns())
            writer.writerow("" if value is None else value for value in values)
    print(f"{len(found)} results in {results.PUBLISHED}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
