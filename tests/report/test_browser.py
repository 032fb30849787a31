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


def test_what_is_missing_stays_last_in_both_orders(shared_page: Any) -> None:
    heading = shared_page.locator(".runs th", has_text="Accuracy").locator("button")
    cells = shared_page.locator(".runs tbody tr > :nth-child(4)")
    for _ in range(2):
        heading.click()
        found = cells.all_text_contents()
        assert found[-2:] == ["–", "–"]
        assert "–" not in found[:-2]


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
    assert latex.startswith("\\begin{tabular}{rlrrrrrrrl}\nRank & Variant & Test accuracy, \\% &")
    assert latex.count(" \\\\\n") == 4
    assert "$\\pm$" in latex


def test_no_name_is_a_formula_in_a_spreadsheet(visit: Any, tmp_path: Path, write_run: Any) -> None:
    for label in ("=A1+1", "@sum", "-cmd|x", "+a, b", "-1.5 wide"):
        write_run(tmp_path / "runs", label)
    write(build(load_runs([tmp_path / "runs"])), tmp_path / "report.html")
    page = visit((tmp_path / "report.html").as_uri())
    table = copied(page, "csv")
    for cell in (",'=A1+1,", ",'@sum,", ",'-cmd|x,", ',"\'+a, b",', ",-1.5 wide,"):
        assert cell in table
    page.close()


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


AXES = """() => [...document.querySelectorAll('.curves .plot')].map(({ layout }) => [
    layout.yaxis.type, layout.yaxis.range, layout.yaxis.title.text, layout.yaxis.tickformat ?? "",
    layout.yaxis.nticks ?? 0, layout.xaxis.range])"""


def test_scales_change_and_come_back_as_they_were(shared_page: Any) -> None:
    scale = shared_page.locator("[data-scale]")
    before = shared_page.evaluate(AXES)
    assert {axis[0] for axis in before} == {"linear", "log"}
    assert scale.input_value() == ""
    for kind in ("linear", "log"):
        scale.select_option(kind)
        axes = shared_page.evaluate(AXES)
        assert {axis[0] for axis in axes} == {kind}
        assert all(axis[2].endswith(" (log scale)") == (kind == "log") for axis in axes)
    assert 10 ** axes[0][1][1] <= 1.02  # an accuracy, fitted to the runs and not to the bands
    scale.select_option("")
    assert shared_page.evaluate(AXES) == before
    assert shared_page.complaints == []


def test_a_zoom_stays_on_another_scale_and_is_reset_to_it(shared_page: Any) -> None:
    scale = shared_page.locator("[data-scale]")
    plot = "document.querySelectorAll('.curves .plot')[1]"
    zoom = "{ 'yaxis.range': [-1, 0], 'xaxis.range': [100, 500] }"
    shared_page.evaluate(f"() => Plotly.relayout({plot}, {zoom}).then(() => null)")
    scale.select_option("linear")
    y, x = shared_page.evaluate(f"[{plot}.layout.yaxis.range, {plot}.layout.xaxis.range]")
    assert y == pytest.approx([0.1, 1])
    assert x == [100, 500]
    below = "{ 'yaxis.range': [-0.5, 1] }"  # which a log scale cannot show
    shared_page.evaluate(f"() => Plotly.relayout({plot}, {below}).then(() => null)")
    scale.select_option("log")
    low, high = shared_page.evaluate(f"{plot}.layout.yaxis.range")
    assert high == 0
    assert low == shared_page.evaluate(f"{plot}.layout.meta.scales.log.range[0]")
    scale.select_option("linear")
    shared_page.locator(".plot").nth(1).hover()
    reset = shared_page.locator(".plot").nth(1).locator("[data-title='Reset axes']")
    reset.click()
    y = shared_page.evaluate(f"{plot}.layout.yaxis.range")
    whole = shared_page.evaluate("JSON.parse(document.getElementById('figures').textContent)[1]")
    assert y == pytest.approx(whole["layout"]["meta"]["scales"]["linear"]["range"])
    scale.select_option("")
    assert shared_page.evaluate(AXES)[1][1] == pytest.approx(whole["layout"]["yaxis"]["range"])


def test_all_or_none_of_the_variants(shared_page: Any) -> None:
    boxes = shared_page.locator("[data-variant]:checked")
    shared_page.locator("[data-every=none]").click()
    assert boxes.count() == 0
    assert shared_page.locator(".plot").first.locator(".scatterlayer .trace").count() == 0
    shared_page.locator("[data-every=all]").click()
    assert boxes.count() == 3
    assert shared_page.locator(".plot").first.locator(".scatterlayer .trace").count() > 3


def test_the_theme_outlives_a_reload(visit: Any, address: str) -> None:
    page = visit(address, color_scheme="light")
    page.locator("#theme").click()
    page.reload()
    page.wait_for_function("'ready' in document.documentElement.dataset")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.complaints == []
    page.close()


def test_a_finger_zooms_once_it_is_asked_to(visit: Any, address: str) -> None:
    page = visit(address, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    ways = """() => [...document.querySelectorAll('.plot')].map(
        ({ layout }) => [layout.dragmode, layout.xaxis.fixedrange])"""
    assert page.evaluate(ways) == [[False, True]] * 4
    button = page.locator(".zoom").first
    button.tap()
    assert page.evaluate(ways)[:2] == [["zoom", False], [False, True]]
    assert button.get_attribute("aria-pressed") == "true"
    zoom = "Plotly.relayout(document.querySelector('.plot'), { 'xaxis.range': [1, 2] })"
    page.evaluate(f"() => {zoom}.then(() => null)")
    button.tap()
    assert page.evaluate(ways) == [[False, True]] * 4
    assert page.evaluate("document.querySelector('.plot').layout.xaxis.range") == [0, 1010]
    assert overflow(page) <= 0
    page.close()


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


def asked(page: Any, number: int) -> None:
    """Set all that a reader can set."""
    page.locator("[data-variant]").nth(number - 1).uncheck()
    page.locator("[data-kind=seed]").check()
    page.locator("[data-scale]").select_option("linear")
    page.locator("[data-smooth]").fill("0.5")
    page.locator("#theme").click()
    page.locator(".filter input").first.fill("LSTM")
    for _ in range(2):
        page.locator(".results th", has_text="Time").locator("button").click()
    zoom = "{ 'xaxis.range': [100, 500], 'yaxis.range': [0.5, 0.75] }"
    page.evaluate(
        f"() => Plotly.relayout(document.querySelector('.plot'), {zoom}).then(() => null)"
    )


def kept(page: Any) -> None:
    """All of it is as it was, on a page with another variant before those."""
    unticked = page.locator("[data-variant]:not(:checked)")
    assert unticked.count() == 1
    assert unticked.locator("xpath=..").text_content().strip() == "6 LSTM"
    assert page.locator("[data-kind=seed]").is_checked()
    assert page.locator("[data-scale]").input_value() == "linear"
    assert page.locator("[data-smooth]").input_value() == "0.5"
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator(".filter input").first.input_value() == "LSTM"
    assert "7 of 8 rows" in page.locator(".filter").first.text_content()
    time = page.locator(".results th", has_text="Time")
    assert time.get_attribute("aria-sort") == "descending"
    ranges = "(({ layout }) => [layout.xaxis.range, layout.yaxis.range])"
    assert page.evaluate(f"{ranges}(document.querySelector('.plot'))") == [[100, 500], [0.5, 0.75]]


def test_a_waiting_page_asks_for_nothing_else(browser: Any, tmp_path: Path) -> None:
    with server(Page([tmp_path])) as serving:
        thread = Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        page, asked = browser.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{serving.server_address[1]}/")
        page.wait_for_timeout(500)
        assert len(asked) == 1
        assert page.locator("link[rel=icon]").get_attribute("href") == "data:,"
        page.close()
        serving.shutdown()
        thread.join()


def test_a_served_page_shows_what_is_new_and_keeps_what_is_set(
    visit: Any, tmp_path: Path, write_run: Any
) -> None:
    labels = [f"{number} LSTM" for number in range(7)]
    for label in labels:
        write_run(tmp_path, label)
    with server(Page([tmp_path])) as serving:
        thread = Thread(target=serving.serve_forever, args=(0.05,))
        thread.start()
        page = visit(f"http://127.0.0.1:{serving.server_address[1]}/")
        asked(page, number=len(labels))
        search = page.locator(".results [data-filter], .filter input").first
        search.focus()
        write_run(tmp_path, "<b>GRU</b>")
        page.wait_for_timeout(3500)
        assert page.locator(".results th", has_text="<b>GRU</b>").count() == 0
        page.evaluate("document.activeElement.blur()")
        page.locator(".results th", has_text="<b>GRU</b>").wait_for(
            state="attached", timeout=60_000
        )
        page.wait_for_function("'ready' in document.documentElement.dataset")
        assert page.complaints == []
        kept(page)
        page.close()
        serving.shutdown()
        thread.join()
