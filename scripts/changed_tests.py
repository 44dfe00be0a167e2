"""Prints the tests that a change affects, the nearest first, as arguments of pytest.

    .venv/bin/python scripts/changed_tests.py [REVISION]     # changes since REVISION (HEAD)

A change affects a test file that imports a changed module, directly or through other modules. A
module name in a string (`-m dawnbench_tf.train`) counts as an import.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = '\nif __name__ == "__main__":\n'
ALWAYS = "tests/conformance/test_style.py"
NAMED = re.compile(r"\bdawnbench_tf(?:\.\w+)+|\btests(?:\.\w+)+")


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


OURS = modules()


def changed_files(revision: str) -> list[str]:
    """Returns the paths, from the root, of files that differ from a revision or are untracked."""
    lines: list[str] = []
    for command in (
        ["git", "diff", "--name-only", revision, "--"],
        ["git", "ls-files", "--others", "--exclude-standard"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            error = done.stderr.strip().partition("\n")[0]
            raise SystemExit(f"changed_tests.py: {revision}: should be a revision of git ({error})")
        lines += done.stdout.splitlines()
    return sorted(set(lines))


def test_modules() -> dict[str, Path]:
    """Returns the Python files under tests/, by module name."""
    paths = sorted(ROOT.glob("tests/**/*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


@cache
def graph() -> dict[str, set[str]]:
    """Returns the import graph of product and tests: module -> modules it imports or names."""
    tests = test_modules()
    everything = {**OURS, **tests}
    edges = {name: imports(name, everything) & set(everything) for name in everything}
    for name, path in tests.items():
        text = path.read_text(encoding="utf-8")
        edges[name] |= set(NAMED.findall(text)) & set(everything)
        edges[name] |= {conftest for conftest in _conftests(name, tests) if _uses(text, conftest)}
    by_name = set(OURS) - set().union(*(edges[name] for name in OURS)) - commands(OURS)
    for name in by_name:  # imported by name at run time, by a module of their folder
        edges.setdefault(name.rpartition(".")[0], set()).add(name)
    return edges


def _conftests(name, tests):
    parts = name.split(".")[:-1]
    folders = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return [f"{folder}.conftest" for folder in folders if f"{folder}.conftest" in tests]


@cache
def _fixtures(conftest):
    """Returns the names of a conftest's decorated functions."""
    path = ROOT / f"{conftest.replace('.', '/')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name for node in functions if node.decorator_list}


def _uses(text, conftest):
    """Whether a test takes a fixture of a conftest as an argument."""
    arguments = {
        argument.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arguments)
        for argument in node.args
    }  # fmt: skip
    return bool(_fixtures(conftest) & arguments)


def distances(changed: set[str], edges: dict[str, set[str]]) -> dict[str, int]:
    """Returns the length of the shortest import path from each module to a changed one."""
    # Breadth-first search against the direction of imports: `waiting` is ordered by distance, and a
    # module is appended when it is first reached, so its distance is the shortest.
    steps, waiting = dict.fromkeys(changed, 0), sorted(changed)
    for target in waiting:
        for name, imported in edges.items():
            if target in imported and name not in steps:
                steps[name] = steps[target] + 1
                waiting.append(name)
    return steps


def touched(paths: list[str]) -> list[str]:
    """Returns the test files that a change affects, nearest first."""
    tests = test_modules()
    by_path = {str(path.relative_to(ROOT)): name for name, path in {**OURS, **tests}.items()}
    changed = {by_path[path] for path in paths if path in by_path}
    others = [path for path in paths if path not in by_path]
    for name, path in {**OURS, **tests}.items():  # documents, scripts and tables affect readers
        if any(_names_file(path.read_text(encoding="utf-8"), Path(other)) for other in others):
            changed.add(name)
    steps = distances(changed, graph())
    folders = {part for name in changed for part in name.split(".")[1:-1]}
    namesakes = {f"test_{name}" for name in folders | {name.split(".")[-1] for name in changed}}

    def nearness(name):
        *_, folder, file = name.split(".")
        rank = 0 if file in namesakes or name in changed else 2
        if folder == "conformance" and name not in changed:
            rank = 3
        return rank, steps[name], folder not in folders, name

    near = [name for name in tests if name.rpartition(".")[2].startswith("test_") and name in steps]
    doctests = [
        OURS[name] for name in sorted(changed & set(OURS)) if ">>> " in OURS[name].read_text()
    ]
    chosen = [*doctests, *(tests[name] for name in sorted(near, key=nearness))]
    return [str(path.relative_to(ROOT)) for path in chosen]


def _names_file(text, path):
    """Whether a module names a file: its name, its folder, or a script's stem."""
    folder = "" if path.parent == Path() else str(path.parent)
    quoted = {path.stem} if path.suffix == ".py" else {folder}
    return path.name in text or any(f'"{word}"' in text for word in quoted - {""})


def main() -> None:
    """Prints pytest's arguments; nothing if no file changed."""
    paths = changed_files(*sys.argv[1:] or ["HEAD"])
    if paths:
        print(*dict.fromkeys([ALWAYS, *touched(paths)]), sep="\n")


if __name__ == "__main__":
    main()
