"""Prints figures of the code's structure: rooms, imports between them, typed public functions.

    .venv/bin/python scripts/rooms.py [ROOT ...]     # several checkouts side by side

A room is a file or folder at the top of dawnbench_tf/. An import is upward if it imports a command
or is part of an import cycle of rooms.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = '\nif __name__ == "__main__":\n'


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Returns name -> path of all modules; those in models/ are named `dawnbench_tf.models...`."""
    files = sorted(root.glob("dawnbench_tf/**/*.py")) + sorted(root.glob("models/**/*.py"))
    files = [path for path in files if "dawnbench_tf/models" not in str(path)]
    return {_name(path.relative_to(root)): path for path in files}


def _name(path):
    parts = path.with_suffix("").parts
    parts = ("dawnbench_tf", *parts) if parts[0] == "models" else parts
    return ".".join(parts).removesuffix(".__init__")


def imports(name: str, all_modules: dict[str, Path]) -> set[str]:
    """Returns the absolute names of all modules that a module imports, at any level of its code."""
    path, names = all_modules[name], set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (package if node.level else "", node.module)))
            members = {f"{base}.{alias.name}" for alias in node.names}
            names |= {member if member in all_modules else base for member in members}
    return names - {name}


def commands(all_modules: dict[str, Path]) -> set[str]:
    """Returns the names of the modules with an `if __name__ == "__main__":` block."""
    return {name for name, path in all_modules.items() if MAIN in path.read_text(encoding="utf-8")}


def figures(root: Path) -> dict[str, str]:
    """Returns name -> figure, as text, of a checkout."""
    ours = modules(root)
    mains = commands(ours)
    edges = {
        (room(name), room(target))
        for name in set(ours) - mains
        for target in imports(name, ours) & set(ours)
        if room(name) != room(target) and room(target)
    }
    upward = [(a, b) for a, b in edges if f"dawnbench_tf.{b}" in mains or a in reached(b, edges)]
    functions = [node for path in ours.values() for node in public(path)]
    typed = sum(map(is_typed, functions))
    return {
        "rooms at the top": str(len({room(name) for name in ours} - {""})),
        "imports between them": str(len(edges)),
        "upward": f"{len(upward)} {' '.join(f'{a}->{b}' for a, b in sorted(upward))}".strip(),
        "files": str(len(ours)),
        "largest file, lines": str(max(len(p.read_text().splitlines()) for p in ours.values())),
        "lines": str(sum(len(path.read_text().splitlines()) for path in ours.values())),
        "arguments recipe, splits, placement": str(sum(map(carried, ours.values()))),
        "public functions": str(len(functions)),
        "of these fully typed": str(typed),
    }


def room(module: str) -> str:
    """Returns the room of a module; "" for the package itself."""
    return module.split(".")[1] if "." in module else ""


def reached(start: str, edges: set[tuple[str, str]]) -> set[str]:
    """Returns all rooms that a room imports, directly or indirectly."""
    rooms, waiting = set(), [start]
    while waiting:
        here = waiting.pop()
        targets = {b for a, b in edges if a == here} - rooms
        rooms |= targets
        waiting += targets
    return rooms


def public(path: Path) -> list[ast.FunctionDef]:
    """Returns a file's public functions and methods, without Keras's and Python's protocols."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    nodes = [*tree.body, *(item for cls in classes for item in cls.body)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return [
        node for node in functions if not (node.name.startswith(("_", "on_")) or protocol(node))
    ]


def carried(path: Path) -> int:
    """Counts the arguments named recipe, splits or placement in a file's functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    arguments = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    return sum(name in ("recipe", "splits", "placement") for name in arguments)


def protocol(node: ast.FunctionDef) -> bool:
    """Whether a protocol of Keras or Python defines the method, and so its types."""
    return node.name in {
        *("call", "build", "compute_mask", "compute_output_shape", "get_config", "from_config"),
        *("parse", "flag_type", "find_class", "get_next"),
    } and any(argument.arg in ("self", "cls") for argument in node.args.args)


def is_typed(node: ast.FunctionDef) -> bool:
    """Whether each argument and the result have a type."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [item for item in (node.args.vararg, node.args.kwarg) if item]
    names = [item for item in arguments if item.arg not in ("self", "cls")]
    return node.returns is not None and all(item.annotation for item in names)


def main() -> None:
    """Prints the figures, one column for each checkout."""
    roots = [Path(name).resolve() for name in sys.argv[1:]] or [ROOT]
    columns = [figures(root) for root in roots]
    for name in columns[0]:
        print(f"{name:36}" + "  ".join(f"{column[name]:>12}" for column in columns))
    for name, path in modules(roots[-1]).items():
        for node in public(path):
            if not is_typed(node):
                print(f"not typed: {name}.{node.name}")


if __name__ == "__main__":
    main()
