"""Prints figures of the code's size and structure, of several checkouts side by side.

    .venv/bin/python scripts/rooms.py [ROOT ...]

A room is a file or folder at the top of dawnbench_tf/. Rooms are in a circle if they import each
other; a command may import everything, and an import of a command is upward. A module's name in a
string that is passed to `import_module` counts.
"""

import ast
import re
import sys
from pathlib import Path

from changed_tests import ROOT, commands, imports, modules

BY_NAME = re.compile(r'import_module\(\s*"(dawnbench_tf[\w.]+)"')


def figures(root: Path) -> dict[str, str]:
    """Returns name -> figure, as text, of a checkout."""
    ours = modules(root)
    texts = {name: path.read_text(encoding="utf-8") for name, path in ours.items()}
    mains, edges = commands(ours), set[tuple[str, str]]()
    upward = 0
    for name in set(ours) - mains:  # commands may import everything
        targets = (imports(name, ours) | {*BY_NAME.findall(texts[name])}) & set(ours)
        upward += len(targets & mains)
        edges |= {(room(name), room(target)) for target in targets}
    edges = {(a, b) for a, b in edges if a != b and a and b}
    in_circles = {a for a, b in edges if a in reached(b, edges)}
    lines = [line.strip() for text in texts.values() for line in text.splitlines()]
    bodies = [body for text in texts.values() for body in body_lengths(text)]
    builds = [path for name in ("BUILD", "WORKSPACE") for path in root.glob(f"**/{name}")]
    return {
        "product code, lines": f"{len(lines):,}",
        "scripts, lines": f"{count(root.glob('scripts/**/*.*'), '.py', '.sh'):,}",
        "BUILD files, lines": f"{count(path for path in builds if '.venv' not in path.parts):,}",
        "tests, lines": f"{count(root.glob('tests/**/*.py')):,}",
        "modules at the top": str(len([*(root / "dawnbench_tf").glob("*.py")])),
        "rooms": str(len({room(name) for name in ours} - {""})),
        "rooms in circles": f"{len(in_circles)} {' '.join(sorted(in_circles))}".strip(),
        "upward imports": str(upward),
        "functions of at most three lines": f"{sum(n <= 3 for n in bodies) / len(bodies):.0%}",
        "comments, of all lines": f"{sum(line[:1] == '#' for line in lines) / len(lines):.1%}",
    }


def room(name: str) -> str:
    """Returns the room of a module; "" for the package itself."""
    return name.partition(".")[2].partition(".")[0]


def reached(start: str, edges: set[tuple[str, str]]) -> set[str]:
    """Returns the rooms that one imports, directly or not."""
    rooms, waiting = set[str](), [start]
    while waiting:
        more = {b for a, b in edges if a == waiting[-1]} - rooms
        waiting[-1:] = more
        rooms |= more
    return rooms


def body_lengths(text: str) -> list[int]:
    """Returns the lines of each function's body, without its docstring."""
    lengths = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lengths.append((body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0)
    return lengths


def count(paths, *suffixes: str) -> int:
    """Returns the lines of files, of those with a suffix if there are any."""
    chosen = (p for p in paths if p.is_file() and (not suffixes or p.suffix in suffixes))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in chosen)


def main(*roots: str) -> None:
    """Prints a row for each figure, with a column for each checkout."""
    table = [figures(Path(root)) for root in roots or [str(ROOT)]]
    for name in table[0]:
        print(f"{name:34}" + "  ".join(f"{column[name]:>12}" for column in table))


if __name__ == "__main__":
    main(*sys.argv[1:])
