"""Settings of the whole suite."""

import logging
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import settings

# two workers share two cores; more threads than that only get in each other's way
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# torch's tracers write thousands of records a second for tools of their own
logging.getLogger("torch.__trace").disabled = True


# the same cases every time where nobody is there to look at a new one
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--errors",
        action="store_true",
        help="print how far each cell was from its NumPy reference (tests/cells)",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.getoption("errors"):
        return
    terminalreporter.section("largest difference between cell and reference")
    found = [
        (report.nodeid, value)
        for report in terminalreporter.getreports("")  # of tests that have been torn down
        for name, value in getattr(report, "user_properties", ())
        if name == "largest_error"
    ]
    for test, value in sorted(found):
        terminalreporter.line(f"{value:.1e}  {test}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One chromium for all tests of a module."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the PATH to open pages with")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=flags)
        yield chromium
        chromium.close()
