"""The page in a real browser: it draws, sorts, darkens, shrinks and prints."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from attractor.report import build, write
from attractor.report.watch import Page, server
from attractor.runs.read import load_runs

pytestmark = pytest.mark.browser

LONG = "a label that is much longer than anybody should make one, <script>alert(1)</script>"


@pytest.fixture(scope="module")
def shared_page(visit: Any, address: str) -> Iterator[Any]:
    page = visit(address, viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def column(page: Any, number: int) -> list[str]:
    cells = page.locator(f".results tbody tr > :nth-child({number})")
    return [text.strip() for text in cells.all_text_contents()]


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_it_opens_in_silence_and_alone(shared_page: Any, address: str) -> None:
    assert shared_page.complaints == []
    assert shared_page.requests == [address]


def test_every_figure_has_curves_with_a_size(shared_page: Any) -> None:
    plots = shared_page.locator(".plot")
    assert plots.count() == 4
    for index in range(4):
        lines = plots.nth(index).locator(".scatterlayer path.js-line")
        boxes = [line.bounding_box() for line in lines.all()]
        drawn = [box for box in boxes if box and box["width"] > 100 and box["height"] > 30]
        assert len(drawn) >= 3


def test_only_harmless_buttons_are_on_the_figures(shared_page: Any) -> None:
    labels = shared_page.locator(".modebar-btn").evaluate_all(
        "buttons => buttons.map(b => b.getAttribute('aria-label') || b.dataset.title)"
    )
    assert len(labels) == 16
    assert set(labels) == {"Download plot as a PNG", "Zoom", "Pan", "Reset axes"}


def test_the_table_sorts_both_ways_by_click_and_by_key(shared_page: Any) -> None:
    heading = shared_page.locator(".results th", has_text="Test accuracy")
    heading.locator("button").click()
    assert column(shared_page, 2) == ["LSTM", "GRU", "NRU"]
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").press("Enter")
    assert column(shared_page, 2) == ["NRU", "GRU", "LSTM"]
    assert heading.get_attribute("aria-sort") == "descending"
    assert shared_page.locator(".results [aria-sort]").count() == 1


def test_seeds_and_variants_come_and_go(shared_page: Any) -> None:
    lines = shared_page.locator(".plot").first.locator(".scatterlayer .trace")
    before = lines.count()
    shared_page.locator("[data-kind=seed]").check()
    assert lines.count() == before + 9
    shared_page.locator("[data-kind=seed]").uncheck()
    shared_page.locator("[data-kind=band]").uncheck()
    assert lines.count() == before - 3
    shared_page.locator("[data-kind=band]").check()
    shared_page.locator("[data-variant='0']").uncheck()
    assert lines.count() < before
    shared_page.locator("[data-variant='0']").check()
    assert lines.count() == before


def test_the_toggle_darkens_the_page_and_its_figures(shared_page: Any) -> None:
    look = """() => [
        getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector(".xtick text")).fill,
        document.querySelector(".plot").layout.hoverlabel.bgcolor,
    ]"""
    light = shared_page.evaluate(look)
    shared_page.locator("#theme").click()
    dark = shared_page.evaluate(look)
    assert all(before != after for before, after in zip(light, dark, strict=True))
    assert shared_page.locator("#theme").get_attribute("aria-pressed") == "true"
    shared_page.locator("#theme").click()
    assert shared_page.evaluate(look) == light


def test_it_follows_the_scheme_of_the_system(visit: Any, address: str) -> None:
    page = visit(address, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    ticks = "getComputedStyle(document.querySelector('.xtick text')).fill"
    dark = page.evaluate(f"[{background}, {ticks}]")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(
        f"dark => {background} !== dark[0] && {ticks} !== dark[1]", arg=dark, timeout=5000
    )
    page.close()


def test_a_phone_needs_no_sideways_scrolling(visit: Any, tmp_path: Path, write_run: Any) -> None:
    for label in ("LSTM", LONG):
        write_run(tmp_path / "runs", label, config={"title": "Unbreakable" * 9})
    write(build(load_runs([tmp_path / "runs"])), tmp_path / "report.html")
    address = (tmp_path / "report.html").as_uri()
    page = visit(address, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    assert overflow(page) <= 0
    page.locator("details").last.locator("summary").click()
    assert overflow(page) <= 0
    widths = page.locator(".plot svg.main-svg").evaluate_all("all => all.map(s => s.clientWidth)")
    assert 300 < max(widths) <= 390
    assert page.complaints == []
    assert "<script>alert(1)</script>" in page.locator(".keys").text_content()
    page.close()


def test_print_is_light_whole_and_without_buttons(visit: Any, address: str) -> None:
    page = visit(address, viewport={"width": 688, "height": 1000}, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#theme").is_visible()
    assert not page.locator(".keys input").first.is_visible()
    assert page.locator(".keys label").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert overflow(page) <= 0
    page.wait_for_function(
        """() => [...document.querySelectorAll(".plot")].every(
            plot => plot.layout.width <= 344
                && plot.layout.font.color === getComputedStyle(plot).color
                && plot.querySelector("svg.main-svg").getBoundingClientRect().right <= 688
        )""",
        timeout=5000,
    )
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.locator("#theme").is_visible()
    page.close()


def copied(page: Any, kind: str) -> str:
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator(f"[data-copy={kind}]").first.click()
    page.wait_for_function("() => window.copied !== undefined")
    text = page.evaluate("() => { const text = window.copied; delete window.copied; return text; }")
    return str(text)


def test_tables_are_copied_as_csv_and_latex(shared_page: Any) -> None:
    head, *lines = copied(shared_page, "csv").splitlines()
    assert head.startswith('Rank,Variant,"Test accuracy, %",Behind the best,Median,Test loss,Seeds')
    assert len(lines) == 3
    assert sorted(line.split(",")[1] for line in lines) == ["GRU", "LSTM", "NRU"]
    latex = copied(shared_page, "latex")
    assert latex.startswith("\\begin{tabular}{llllllllll}\nRank & Variant & Test accuracy, \\% &")
    assert latex.count(" \\\\\n") == 4
    assert "$\\pm$" in latex


def test_a_table_is_saved_and_failed_runs_are_copied_too(shared_page: Any) -> None:
    with shared_page.expect_download() as event:
        shared_page.locator("[data-save]").first.click()
    assert event.value.suggested_filename == "copy-memory-results.csv"
    assert event.value.path().read_text("utf-8") == copied(shared_page, "csv")
    failed = shared_page.locator("[data-save=copy-memory-failed]").locator("xpath=..")
    shared_page.evaluate("navigator.clipboard.writeText = async (text) => { window.text = text; }")
    failed.locator("[data-copy=csv]").click()
    shared_page.wait_for_function("() => window.text !== undefined")
    found = shared_page.evaluate("() => window.text")
    assert found == "Failed run,Seed,Step,Reason\nNRU,1,500,the loss became NaN\n"
    assert shared_page.complaints == []


def test_scales_change_and_come_back(shared_page: Any) -> None:
    box = shared_page.locator("[data-log]")
    types = "() => [...document.querySelectorAll('.curves .plot')].map(p => p.layout.yaxis.type)"
    before = shared_page.evaluate(types)
    assert box.is_checked() == ("log" in before)
    box.set_checked(not box.is_checked())
    assert set(shared_page.evaluate(types)) == {"linear"}
    box.check()
    assert set(shared_page.evaluate(types)) == {"log"}
    assert shared_page.complaints == []


def test_every_section_can_be_linked_to(shared_page: Any) -> None:
    links = shared_page.locator(".anchor").evaluate_all("all => all.map(a => a.hash)")
    assert "#chapter-1-results" in links
    assert len(set(links)) == len(links) == 6
    for link in links:
        assert shared_page.locator(link).count() == 1


def test_many_variants_are_filtered_and_tasks_have_maps(
    visit: Any, tmp_path: Path, write_run: Any
) -> None:
    for number in range(8):
        folder = write_run(tmp_path / "runs", f"{number} variant")
        done = json.loads((folder / "done.json").read_text())
        (folder / "done.json").write_text(json.dumps(done | {"matrix": [[0.1, 0.2], [0.9, 0.1]]}))
    write(build(load_runs([tmp_path / "runs"])), tmp_path / "report.html")
    page = visit((tmp_path / "report.html").as_uri())
    page.locator("[data-filter]").first.fill("3 VAR")
    assert page.locator(".results tbody tr:visible").count() == 1
    assert copied(page, "csv").count("\n") == 2
    assert page.locator(".matrices .heatmaplayer image").count() == 8
    assert page.complaints == []
    page.close()


def test_a_served_page_shows_what_is_new(visit: Any, tmp_path: Path, write_run: Any) -> None:
    write_run(tmp_path, "LSTM")
    with server(Page([tmp_path])) as serving:
        thread = Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        page = visit(f"http://127.0.0.1:{serving.server_address[1]}/")
        write_run(tmp_path, "<b>GRU</b>")
        page.locator(".results th", has_text="<b>GRU</b>").wait_for(timeout=60_000)
        assert page.complaints == []
        page.close()
        serving.shutdown()
        thread.join()
