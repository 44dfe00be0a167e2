"""docs/api.md has every public name, each with its arguments described."""

import runpy
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[2]
API = runpy.run_path(str(ROOT / "scripts/api_page.py"))


def test_every_public_name_and_argument_is_described_on_the_page():
    page = API["Page"]()
    assert page.problems == []
    written = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert page.text == written, "run scripts/api_page.py"
    assert page.text.count("\n## ") == len(API["ORDER"])


def test_an_argument_without_a_description_is_a_problem():
    code = '''
def scale(images, factor: float, *, seed=0):
    """Scales images by `factor`.

    Args:
      images: float32 (batch, height, width, 3).
      shift: added to each image.
    """
'''
    with griffe.temporary_visited_module(code) as module:
        page = API["Page"]()
        lines = list(page._function(module["scale"], "###"))
    *_, unknown, missing = page.problems
    assert "'shift' does not appear in the function signature" in unknown
    assert missing == "module.scale: seed is not described"
    assert "scale(images, factor: float, *, seed=0)" in lines[1]
