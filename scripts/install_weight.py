"""Prints the size of the installation by direct requirement.

    .venv/bin/python scripts/install_weight.py

Columns: MB of the requirement itself, and MB that dropping only this requirement would save.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

HARNESS = 'extra == "harness"'
NAME = re.compile(r"[A-Za-z0-9._-]+")


def main() -> None:
    """Prints the table, the heaviest first."""
    direct = _requirements(distribution("dawnbench_tf"))
    whole = _closure(direct)
    sizes = {name: _megabytes(name) for name in whole}
    tools = {_key(d.metadata["Name"]) for d in distributions()} - whole - {"dawnbench-tf"}
    print(f"{len(whole)} packages, {sum(sizes.values()):,.0f} MB; besides, for tests: ", end="")
    print(f"{len(tools)} packages, {sum(map(_megabytes, tools)):,.0f} MB")
    print(f"{'requirement':24} {'own MB':>8} {'alone MB':>9} {'packages':>9}")
    rows = []
    for name in direct:
        rest = _closure(direct - {name})
        gone = whole - rest
        rows.append((sum(sizes[item] for item in gone), sizes[name], name, len(gone)))
    for alone, own, name, packages in sorted(rows, reverse=True):
        print(f"{name:24} {own:8,.0f} {alone:9,.0f} {packages:9}")


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(dist: Distribution) -> set[str]:
    """Returns the installed requirements of a distribution; for this package with its harness."""
    lines = [line for line in dist.requires or () if "extra ==" not in line or HARNESS in line]
    names = {_key(NAME.match(line)[0]) for line in lines}
    return {name for name in names if _installed(name)}


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _closure(names: set[str]) -> set[str]:
    reached, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _requirements(distribution(name))
    return reached


def _megabytes(name: str) -> float:
    files = distribution(name).files or ()
    paths = (file.locate() for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
