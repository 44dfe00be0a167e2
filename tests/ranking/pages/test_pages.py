"""HTML pages: all entries and tables, escaped text, no network, and the view of a real browser."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from dawnbench_tf.ranking import pages, plots, results, tables
from tests.test_entries import put

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = "</script></title><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"


class Tags(HTMLParser):
    """Collects tags with their attributes, and ids."""

    def __init__(self, text):
        super().__init__()
        self.all_results = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.all_results.append((tag, dict(attrs)))


def site(folder, all_results):
    return pages.write(folder, tables.rank(all_results), all_results).read_text()


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    run = tmp_path_factory.mktemp("run")
    words = {"model": HOSTILE, "author": "eve@evil.example", "codeURL": "https://a@b/"}
    put(run, name="m", hardware="\ud83d ] ]> \u202e" + HOSTILE, **words)
    (mine,) = results.read_tree(run)[0]
    folder = tmp_path_factory.mktemp("site")
    site(folder, [*results.dawnbench_results(), replace(mine, mine=True)])
    return folder


def every_page(folder):
    return sorted(folder.rglob("*.html"))


def test_every_entry_has_a_page_and_every_table_all_of_its_rows(published):
    assert len(list((published / "entries").iterdir())) == 119
    index = (published / "index.html").read_text()
    counts = [body.count("<tr") for body in re.findall(r"<tbody>(.*?)</tbody>", index, re.S)]
    ranked = tables.rank(results.dawnbench_results())
    assert sum(counts) == sum(len(table.rows) for table in ranked) + 2  # and mine's
    assert len(counts) == 12


def test_every_link_leads_somewhere(published):
    for page in every_page(published):
        tags = Tags(page.read_text()).all_results
        ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
        assert len(ids) == len(set(ids)), page
        for link in [attrs["href"] for tag, attrs in tags if tag == "a"]:
            if not link.startswith(("http://", "https://")):
                file, _, part = link.partition("#")
                target = (page.parent / file).resolve() if file else page
                assert target.is_file(), link
                assert not part or "=" in part or f'id="{part}"' in target.read_text(), link


def test_strangers_text_stays_text_and_nothing_is_fetched(published):
    for page in every_page(published):
        text = page.read_text(encoding="utf-8")
        assert "<img src=x" not in text and "onerror=alert(1)>" not in text and "@evil" not in text
        tags = Tags(text).all_results
        assert not [tag for tag, attrs in tags if "style" in attrs]
        sources = [attrs["src"] for _, attrs in tags if "src" in attrs]
        assert all(re.fullmatch(r"data:image/svg\+xml;base64,[\w+/=]+", s) for s in sources)
        assert not [key for _, attrs in tags for key in attrs if key.startswith("on")]
        assert {tag for tag, _ in tags if tag in ("link", "iframe", "object", "form")} == set()
        (policy,) = (a["content"] for _, a in tags if "Content-Security" in a.get("http-equiv", ""))
        assert policy.startswith("default-src 'none'; img-src data:; ") and "unsafe" not in policy
        urls = [attrs.get("href", "") for _, attrs in tags]
        assert all(re.match(r"https?://|[\w./#=-]+$", url) for url in urls if url)


def test_names_of_files_are_safe_and_no_two_alike(tmp_path):
    base = results.dawnbench_results()[0]
    names = ["a/../../b", "A..b", "a b", "a_b", "é" * 300, "", "\n"]
    site(tmp_path, [replace(base, name=name) for name in names for _ in range(2)])
    written = [path.name for path in (tmp_path / "entries").iterdir()]
    assert len(written) == 14
    assert all(re.fullmatch(r"[A-Za-z0-9.-]{1,120}", name) for name in written)


def test_charts_bear_one_entry_and_extremes():
    base = next(result for result in results.dawnbench_results() if result.hours)
    for hours in (0.0, 1e-9, 1.0, 1e9, 1e300):
        (table, *_) = tables.rank([replace(base, hours=hours)])
        head, _, content = plots.record_chart(table)["source"].partition(",")
        assert head == "data:image/svg+xml;base64"
        text = base64.b64decode(content).decode()
        assert "nan" not in text and "<script" not in text
        ElementTree.fromstring(text)


def test_the_comparison_s_data_ends_no_script(published):
    text = (published / "compare.html").read_text()
    data = re.search(r'id="data">(.*?)</script>', text, re.S)[1]
    rows = json.loads(data)
    assert len(rows) == 119 and "<" not in data and "&" not in data
    assert [row["model"] for row in rows.values()].count(HOSTILE) == 1


def test_the_comparison_has_the_dot_of_the_ranking_and_a_long_curve_s_end(tmp_path):
    base = next(r for r in results.dawnbench_results() if r.hours and r.dataset == "SQuAD")
    curve = tuple((n / 100, 0.75 if n == 62 else 0.74996) for n in range(1, 63))
    site(tmp_path, [results.at_threshold(replace(base, curve=curve), 0.75)])
    text = (tmp_path / "compare.html").read_text()
    (row,) = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1]).values()
    assert row["hit"] == row["curve"][-1] == [0.62, 0.75] and len(row["curve"]) < 40


def browse(page, fragment=""):
    """Returns the page after its scripts ran in Chromium, and Chromium's complaints."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command = [CHROMIUM, *flags, "--virtual-time-budget=5000", "--dump-dom"]
    with tempfile.TemporaryDirectory() as profile:  # its own: two browsers cannot share one
        command += [f"--user-data-dir={profile}", f"{page.as_uri()}{fragment}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console


browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")


@browser
def test_in_a_browser_tables_show_ten_rows_and_one_s_own(published):
    text, console = browse(published / "index.html")
    assert not console and len(re.findall(r">Show all \d", text)) == 12
    cifar10 = re.findall(r"<tbody>(.*?)</tbody>", text, re.S)[4]
    rows = re.findall(r"<tr[^>]*>", cifar10)
    assert len(rows) == 32 and sum("hidden" not in row for row in rows) == 11
    assert text.count('<button type="button">Hardware</button>') == 12


@browser
def test_in_a_browser_the_filter_s_words_pick_rows(published):
    text, console = browse(published / "index.html", "#q=bidaf%20k80")
    assert not console and re.search(r'id="found"[^>]*>8 rows match', text)
    assert len(re.findall(r"<article[^>]*hidden", text)) == 8
    assert len(re.findall(r"<section[^>]*hidden", text)) == 2


@browser
def test_in_a_browser_two_entries_are_compared(published):
    fragment = "#a=SQuAD-train-dawn-fastfusionnet-1080ti&b=SQuAD-train-dawn-drqa-1t4-gc-pytorch"
    text, console = browse(published / "compare.html", fragment)
    part = text[text.index('id="comparison"') :]
    assert not console and "0:18:46" in part and "0:50:21" in part
    assert part.count("<polyline") == 2
    empty, console = browse(published / "compare.html", "#a=__proto__&b=constructor")
    assert not console and "<polyline" not in empty


@browser
def test_in_a_browser_a_curve_s_dot_is_where_the_threshold_is_met(published):
    result = next(r for r in results.dawnbench_results() if r.hours and len(r.curve) > 10)
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{result.dataset}-train-{result.name}")
    text, console = browse(published / f"entries/{name}.html")
    level, x, y = (
        re.search(pattern, text)[1]
        for pattern in (r'class="threshold"[^>]* y1="([\d.]+)"', r'cx="([\d.]+)', r'cy="([\d.]+)')
    )
    points = re.search(r'<polyline class="line" points="([^"]+)"', text)[1].split()
    assert not console and f"{x},{y}" in points and float(y) <= float(level)  # y points down
    assert len(points) == len(result.curve) and f"{result.score:g} after " in text


@browser
def test_in_a_browser_a_stranger_s_script_does_not_run(published):
    (page,) = (path for path in every_page(published) if path.name.endswith("-train-m.html"))
    text, console = browse(page)
    assert not console and "&lt;img" in text and "<img src=x" not in text
