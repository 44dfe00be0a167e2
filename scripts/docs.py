"""The site of docs/: hooks of mkdocs, and an extension of griffe for fields with help texts."""

import ast
import re
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]
PUBLIC = re.compile(r"^::: (dawnbench_tf\.[\w.]+)$", re.MULTILINE)  # a module of docs/api.md


def on_files(files: Any, config: Any) -> None:
    """Adds the documents of the top folder to the site's pages; README.md is its index."""
    from mkdocs.structure.files import File

    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        path = "index.md" if name == "README.md" else name
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Returns a page whose links to the top folder lead to its documents in the site."""
    return markdown.replace("](../", "](")


class Extension(griffe.Extension):
    """Gives each `setting(default, help)` its help as docstring, and examples a fence."""

    def on_attribute_instance(
        self, *, node: Any, attr: griffe.Attribute, agent: Any, **_: Any
    ) -> None:
        """Replaces the value of a setting by its default."""
        match getattr(node, "value", None):
            case ast.Name(name):  # perhaps a setting of several classes
                constant = agent.current.module.members.get(name)
                if isinstance(constant, griffe.Attribute) and constant.docstring:
                    attr.value, attr.docstring = constant.value, constant.docstring
            case ast.Call(ast.Name("setting"), [default, ast.Constant(str(help))], keywords):
                for keyword in keywords:
                    if keyword.arg == "choices":
                        help += f"; one of `{ast.unparse(keyword.value)}`"
                attr.value = ast.unparse(default)
                attr.docstring = griffe.Docstring(help, parent=attr)

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Puts paragraphs that start with `>>>` into fences, which Markdown would quote."""
        if obj.docstring:
            text = re.sub(r"(?m)^>>> .*(?:\n.+)*", r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = text
