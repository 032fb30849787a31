"""The built site in a real browser, offline: equations, diagrams, search, no complaint."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROSE = """() => {
    const text = document.querySelector("article").cloneNode(true)
    text.querySelectorAll(".katex, pre, code").forEach(element => element.remove())
    return text.textContent
}"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy: the tests of two workers must not meet in one folder."""
    if find_spec("zensical") is None:
        pytest.skip("zensical is not installed; `make docs` installs it")
    copy = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", copy)
    for folder in ("docs", "src"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "griffe:" not in said, said
    assert "Warning" not in said, said
    return copy / "site"


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    """A page that notes what leaves the disk and what goes wrong."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.trouble = []
    page.on("console", lambda message: page.trouble.append(message.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("requestfailed", lambda request: page.trouble.append(f"failed: {request.url}"))
    page.route(re.compile("^(?!file:)"), lambda route: route.abort())
    return page


def visit(page: Any, path: Path) -> None:
    page.trouble.clear()
    page.goto(path.as_uri())


def prose(page: Any) -> str:
    return str(page.evaluate(PROSE))


def source_of_equations(text: str) -> list[str]:
    return re.findall(r"\\[a-zA-Z(\[]+|:math:|\.\. math|\$\$", text)


def test_a_cell_has_equations_a_diagram_and_code(site: Path, page: Any) -> None:
    visit(page, site / "cells" / "gru.html")
    page.wait_for_function("document.fonts.check('16px KaTeX_Main')")
    assert page.locator("article > .arithmatex .katex-display").count() == 1
    assert page.locator(".doc-contents .katex-display").count() == 1
    assert page.locator(".katex-display").first.bounding_box()["height"] > 80
    assert source_of_equations(prose(page)) == []
    assert page.locator("img[src*='gru.svg']").bounding_box()["height"] > 50
    signature = page.locator(".doc-class > .doc-signature").first.text_content()
    assert re.match(r"\s*GRUCell\(\s*input_size: int,\s*hidden_size: int,", signature)
    assert ">>> y.shape" in page.locator(".doc-contents pre").first.text_content()
    assert page.locator(".admonition, article details:not(.mkdocstrings-source)").count() == 0
    assert page.trouble == []


def test_a_reader_who_likes_it_dark_has_it_dark(site: Path, page: Any) -> None:
    try:
        for scheme, dark in (("dark", True), ("light", False)):
            page.emulate_media(color_scheme=scheme)
            visit(page, site / "cells" / "gru.html")
            page.evaluate("localStorage.clear()")  # the first visit decides for the next ones
            page.reload()
            shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
            assert (max(page.evaluate(shade)) < 80) == dark
            drawn = page.locator("img[src*='gru.svg']")
            colour = drawn.evaluate("image => getComputedStyle(image).backgroundColor")
            assert (colour == "rgb(255, 255, 255)") == dark
        assert page.locator("[data-md-component='palette'] label:visible").count() == 1
    finally:
        page.evaluate("localStorage.clear()")
        page.emulate_media(color_scheme="light")


def test_the_search_finds_a_cell(site: Path, page: Any) -> None:
    visit(page, site / "index.html")
    assert page.locator("text=TARDIS >> visible=true").count() == 0
    page.keyboard.press("Control+k")
    page.keyboard.type("wormhole", delay=20)
    page.locator("text=TARDIS >> visible=true").first.wait_for(timeout=20_000)
    assert page.trouble == []


@pytest.mark.slow
def test_every_page_is_whole_quiet_and_not_endless(site: Path, page: Any) -> None:
    paths = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    assert len(paths) > 40
    for path in paths:
        name = str(path.relative_to(site))
        visit(page, path)
        assert source_of_equations(prose(page)) == [], name
        assert page.locator(".katex-error").count() == 0, name
        missing = "all => all.filter(image => !image.naturalWidth).map(image => image.src)"
        assert page.locator("article img").evaluate_all(missing) == [], name
        height, overflow = page.evaluate(
            "[document.body.scrollHeight, document.body.scrollWidth - innerWidth]"
        )
        assert height < 25_000, name
        assert overflow <= 0, name
        if path.parent.name == "cells" and path.stem != "regularisers":
            assert page.locator("article > .arithmatex .katex-display").count() >= 1, name
            assert page.locator(".doc-contents .katex-display").count() >= 1, name
        assert page.trouble == [], name


def test_every_diagram_is_drawn_from_its_source() -> None:
    folder = ROOT / "docs" / "diagrams"
    sources = sorted(folder.glob("*.mmd"))
    assert [path.stem for path in sources] == sorted(path.stem for path in folder.glob("*.svg"))
    for source in sources:
        drawn = source.with_suffix(".svg").read_text(encoding="utf-8")
        words = re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", drawn, flags=re.S))
        for label in re.findall(r"\[\(?([^\]()]+)\)?\]", source.read_text(encoding="utf-8")):
            assert set(label.split()) <= set(words.split()), (source.name, label)
        assert "http" not in drawn.replace("http://www.w3.org/", "")
