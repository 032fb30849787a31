"""The picture of a report in the README and in the docs, taken from a page that `attractor` wrote.

attractor run demo --report runs/demo.html
python tests/report/picture.py runs/demo.html docs/report.png
"""

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH = 1200
COLOURS = 128
"""More are not told apart, and take three times the room."""
BELOW = 24
"""Pixels under the last thing that is shown: the first two figures."""


def take(report: Path, to: Path) -> None:
    """Save what a reader sees of a report, from its top to its first two figures."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.wait_for_function("'ready' in document.documentElement.dataset", timeout=60_000)
        box = page.locator(".curves figure").nth(1).bounding_box()
        assert box is not None
        height = box["y"] + box["height"] + BELOW
        page.screenshot(
            path=to, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )
        browser.close()
    Image.open(to).quantize(COLOURS).save(to, optimize=True)


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
