"""docs/api.md lists each module with an `__all__`; its names and their arguments are described."""

import runpy
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]
DOCS = runpy.run_path(str(ROOT / "scripts/docs.py"))


def problems(member):
    """A line for each class, function, argument or field without a description."""
    member = member.final_target if member.is_alias else member
    if not member.docstring:
        return [f"{member.path}: has no docstring"]
    lines, wanted, described = [], [], set()
    if member.is_function:
        wanted = [item.name for item in member.parameters]
    elif member.is_class:
        public = {n: m for n, m in member.members.items() if not n.startswith(("_", "on_"))}
        for inner in public.values():
            if not inner.is_alias and (inner.is_function or "property" in inner.labels):
                lines += problems(inner)
        fields = [n for n, m in public.items() if m.is_attribute and "property" not in m.labels]
        init = member.members.get("__init__")  # griffe adds that of a dataclass
        wanted = [item.name for item in init.parameters] if init else fields
        described = {name for name in fields if public[name].docstring}
    for section in member.docstring.parse("google", returns_multiple_items=False):
        if section.kind.value in ("parameters", "attributes"):
            described |= {item.name.lstrip("*") for item in section.value}
    return lines + [
        f"{member.path}: {name} is not described"
        for name in wanted
        if name not in ("self", "cls", *described) and name[0] != "_"
        if f"`{name}`" not in member.docstring.value
    ]


def test_every_public_name_and_argument_is_described(caplog):
    extensions = griffe.load_extensions(DOCS["Extension"])
    options = {"search_paths": [ROOT], "resolve_aliases": True}
    package = griffe.load("dawnbench_tf", **options, extensions=extensions)
    public, pending = {}, [package]
    while pending:
        module = pending.pop()
        pending += [m for m in module.members.values() if not m.is_alias and m.is_module]
        if module is not package and module.exports is not None:
            public[module.path] = module
    listed = DOCS["PUBLIC"].findall((ROOT / "docs/api.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(public)
    lines = [
        line for module in public.values() for name in module.exports
        for line in problems(module[str(name)])
    ]  # fmt: skip
    assert lines + caplog.messages == []


def test_what_has_neither_a_description_nor_help_is_a_problem(caplog):
    code = '''
def scale(images, *, seed=0):
    """Scales images.

    Args:
      images: float32 (batch, height, width, 3).
      shift: added to each image.
    """

class Options:
    """Options."""

    steps: int = setting(3, "steps of " "a run", choices=(1, 3))
    name: str = ""
'''
    extensions = griffe.load_extensions(DOCS["Extension"])
    with griffe.temporary_visited_module(code, extensions=extensions) as module:
        assert problems(module["scale"]) == ["module.scale: seed is not described"]
        steps = module["Options"]["steps"]
        assert (steps.value, steps.docstring.value) == ("3", "steps of a run; one of `(1, 3)`")
        assert problems(module["Options"]) == ["module.Options: name is not described"]
    assert "'shift' does not appear in the function signature" in caplog.text
