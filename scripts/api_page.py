"""Writes docs/api.md from the docstrings of the public modules, those with an `__all__`.

    .venv/bin/python scripts/api_page.py

An argument, a field or a name without a description is an error: exit status 1, and no page.
"""

import dataclasses
import importlib
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/api.md"
ORDER = (  # of the page: from what most programs need to what few do
    "models tta train options runs recipes recipes.reproductions recipe tasks data.dataset "
    "data.own.arrays infer answer inference.latency training.speed_test training.profiling "
    "submission.entry ranking.results ranking.tables leaderboard study estimate "
    "speed studies.estimates studies.reports "
    "entries prepare doctor refusals"
).split()
_GOOGLE: Any = {"returns_multiple_items": False, "returns_named_value": False}
COLUMNS = 88  # of a signature on one line
HEAD = """# The API

*For programs that import dawnbench_tf: every public name, its arguments, what it returns.
[library.md](library.md) shows them in use.*

```python
from dawnbench_tf import models, recipes, runs, tta
```

Names on this page keep their meaning until a release says otherwise:
[the changelog](../CHANGELOG.md) announces a change one release before it is made. Every other name
is private and may change in any release. `scripts/api_page.py` makes this page from the docstrings,
which `help()` shows too.

| module | |
|---|---|
"""


class _Collector(logging.Handler):
    """Appends griffe's warnings, as of an argument that a function does not have, to a list."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Appends one."""
        self.messages.append(record.getMessage())


class Page:
    """The page, and what its docstrings lack.

    Attributes:
      text: the whole of docs/api.md.
      problems: a line for each name, argument or field without a description.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        logging.getLogger("griffe").addHandler(_Collector(self.problems))
        package = griffe.load("dawnbench_tf", search_paths=[ROOT], resolve_aliases=True)
        modules = {name: package[name] for name in _public(package)}
        lines = [f"| [{n}](#{_anchor(m.path)}) | {_first(m)} |" for n, m in modules.items()]
        parts = [part for module in modules.values() for part in self._module(module)]
        self.text = HEAD + "\n".join([*lines, "", *parts]).rstrip() + "\n"

    def _module(self, module) -> Iterator[str]:
        yield f"## {module.path}\n"
        for name in module.exports or ():
            member = module[str(name)]
            member = member.final_target if member.is_alias else member
            if member.is_class:
                yield from self._class(member)
            elif member.is_function:
                yield from self._function(member, "###")
            else:
                yield f"### {name}\n\n`{member.value}`. {self._summary(member)}\n"

    def _class(self, member):
        yield f"### {member.name}\n"
        fields = _fields(member)
        if fields:
            yield from self._docstring(member, fields, fields)
        elif init := member.members.get("__init__"):
            yield f"```python\n{_signature(init, member.name, result=False)}\n```\n"
            yield from self._docstring(member, _arguments(init))
        else:
            yield from self._docstring(member, ())
        for name, inner in member.members.items():
            if inner.is_alias or name.startswith(("_", "on_")):
                continue
            if inner.is_function:
                yield from self._function(inner, "####", f"{member.name}.")
            elif inner.is_attribute and "property" in inner.labels:
                kind = f" → `{inner.annotation}`" if inner.annotation else ""
                yield f"**`{member.name}.{name}`**{kind}  \n{self._summary(inner)}\n"

    def _function(self, member, mark, owner=""):
        yield f"{mark} {owner}{member.name}\n"
        yield f"```python\n{_signature(member, owner + member.name)}\n```\n"
        yield from self._docstring(member, _arguments(member))

    def _docstring(self, member, wanted, fields=None):
        """Yields the sections of a docstring; `wanted` are the names that it has to describe."""
        described = {name: help for name, (_, help) in (fields or {}).items() if help}
        if not member.docstring:
            self.problems.append(f"{member.path}: has no docstring")
        ends = []
        for section in member.docstring.parse("google", **_GOOGLE) if member.docstring else ():
            kind = section.kind.value
            if kind in ("parameters", "attributes"):
                described |= {item.name.lstrip("*"): item.description for item in section.value}
            elif kind == "text":
                yield _fenced(section.value) + "\n"
            elif kind in ("returns", "raises"):
                rows = [f"- {_raised(item)}{_joined(item.description)}" for item in section.value]
                ends += ["\n".join([f"**{kind.capitalize()}**\n", *rows, ""])]
        if described:
            types = {name: f" ({text})" for name, (text, _) in (fields or {}).items()}
            rows = [f"- `{n}`{types.get(n, '')}: {_joined(t)}" for n, t in described.items()]
            yield "\n".join([f"**{'Fields' if fields else 'Arguments'}**\n", *rows, ""])
        yield from ends
        text = member.docstring.value if member.docstring else ""
        missing = [name for name in wanted if name not in described and f"`{name}`" not in text]
        self.problems += [f"{member.path}: {name} is not described" for name in missing]

    def _summary(self, member):
        if not member.docstring:
            self.problems.append(f"{member.path}: has no docstring")
            return ""
        return _fenced(member.docstring.value)


def _public(package):
    """Names of the modules with an `__all__`, in ORDER; raises KeyError for one that it lacks."""
    public = []
    pending = [package]
    while pending:
        module = pending.pop()
        pending += [m for m in module.members.values() if not m.is_alias and m.is_module]
        if module is not package and module.exports is not None:
            public.append(module.path.removeprefix("dawnbench_tf."))
    return sorted(public, key={name: index for index, name in enumerate(ORDER)}.__getitem__)


def _fields(member):
    """Type with default, and help, of each field of a dataclass or named tuple, by name."""
    cls = getattr(importlib.import_module(member.module.path), member.name)
    if dataclasses.is_dataclass(cls):
        return {
            item.name: (_type(item.type, item.default), _help(item.metadata))
            for item in dataclasses.fields(cls)
        }
    defaults = getattr(cls, "_field_defaults", {})
    return {
        name: (_type(cls.__annotations__[name], defaults.get(name, dataclasses.MISSING)), "")
        for name in getattr(cls, "_fields", ())
    }


def _help(metadata):
    choices = [choice for choice in metadata.get("choices") or () if choice]
    return metadata.get("help", "") + (f"; one of {', '.join(choices)}" if choices else "")


def _type(annotation, default):
    name = (
        annotation.__name__
        if isinstance(annotation, type) and not hasattr(annotation, "__args__")
        else str(annotation)
    )
    name = re.sub(r"[\w.]+\.(?=\w)", "", name)
    plain = isinstance(default, str | int | float | tuple | None) and default != ""
    return f"`{name}`, default `{default!r}`" if plain else f"`{name}`"


def _arguments(function):
    """Names of the arguments that a docstring has to describe."""
    return [
        p.name for p in function.parameters if p.name not in ("self", "cls") and p.name[0] != "_"
    ]


def _signature(function, name, result=True):
    """A function's head as Python has it, on one line or with a line for each argument."""
    texts, bare = [], False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind.value
        if kind == "keyword-only" and not bare:
            texts.append("*")
        bare = bare or kind in ("keyword-only", "variadic positional")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        annotation = str(parameter.annotation or "").strip("'\"")
        text = f"{stars}{parameter.name}" + (f": {annotation}" if annotation else "")
        default = None if stars else parameter.default
        spaced = " = " if annotation else "="
        texts.append(text if default is None else f"{text}{spaced}{default}")
        if kind == "positional-only":
            texts.append("/")
    returns = str(function.annotation or "").strip("'\"") if result else ""
    end = f") -> {returns}" if returns else ")"
    line = f"{name}({', '.join(texts)}{end}"
    return line if len(line) <= COLUMNS else f"{name}(\n    " + ",\n    ".join(texts) + f",\n{end}"


def _raised(item):
    return f"`{item.annotation}`: " if isinstance(item, griffe.DocstringRaise) else ""


def _joined(text):
    return " ".join(text.split())


def _first(module):
    """The first line of a module's docstring, fit for a cell."""
    return module.docstring.value.partition("\n")[0].replace("|", "\\|") if module.docstring else ""


def _anchor(path):
    return path.replace(".", "")


def _fenced(text):
    """A docstring's text with its examples as blocks of Python."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        f"```pycon\n{paragraph}\n```" if paragraph.lstrip().startswith(">>>") else paragraph
        for paragraph in paragraphs
    )


def main() -> None:
    """Writes the page, or prints what is not described and exits with status 1."""
    page = Page()
    if page.problems:
        sys.exit("\n".join(page.problems))
    PAGE.write_text(page.text, encoding="utf-8")


if __name__ == "__main__":
    main()
