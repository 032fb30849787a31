"""Parts of the page in a real browser: contents, smoothing, single runs, levels, images, keys."""

import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from attractor.models import DRAW
from attractor.report import build, write
from attractor.report.figures import Figure
from attractor.report.inside import Inside, gallery, png
from attractor.report.seen import Seen, layout, line
from attractor.runs.read import load_runs

pytestmark = pytest.mark.browser


def as_levels(folder: Path, reached: int, grew: list[int]) -> None:
    """Make a run one that went through levels; the accuracy on level j after level i is known."""
    matrix = [[1 - 0.1 * abs(i - j) for j in range(4)] for i in range(reached)]
    done = json.loads((folder / "done.json").read_text())
    (folder / "done.json").write_text(json.dumps(done | {"matrix": matrix, "grew_at": grew}))


@pytest.fixture(scope="module")
def page(visit: Any, write_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Levels that seeds reach to different extents, a network looked into, and images."""
    root = tmp_path_factory.mktemp("levels")
    for seed, reached in enumerate((2, 3, 4, 3, 3)):
        as_levels(write_run(root / "runs", "<i>grows</i>", seed), reached, [2])
        as_levels(write_run(root / "runs", "GRU", seed), 2, [])
    runs = load_runs([root / "runs"])
    drawn = Figure("Gate f", True, [line(torch.rand(9), "f")], layout("step", "unit"))
    image = f"data:image/png;base64,{base64.b64encode(png(torch.rand(1, 5, 4))).decode()}"
    seen = Inside("<i>grows</i>", 0, (Seen(drawn, "It forgets <b>slowly</b>."),), (image, image))
    write(build(runs, inside={"copy-memory/quick": [seen]}), root / "report.html")
    opened = visit((root / "report.html").as_uri(), viewport={"width": 1440, "height": 900})
    yield opened
    opened.close()


def test_contents_stay_in_sight_and_say_where_one_is(page: Any) -> None:
    links = page.locator(".toc ol ol a").evaluate_all("all => all.map(a => a.hash)")
    assert "#chapter-1-matrix" in links
    assert "#chapter-1-inside" in links
    for link in links:
        assert page.locator(link).count() == 1
    page.evaluate("document.getElementById('chapter-1-runs').scrollIntoView()")
    page.wait_for_function(
        "() => document.querySelector('.toc [aria-current]')?.hash === '#chapter-1-runs'"
    )
    assert page.locator(".toc").bounding_box()["y"] >= 0
    assert page.locator(".toc a").first.is_visible()


def test_levels_have_their_own_curves_and_maps(page: Any) -> None:
    course = """title => {
        const figure = [...document.querySelectorAll('.curves figure')].find(
            one => one.querySelector('figcaption').textContent === title);
        return figure.querySelector('.plot').data.map(trace => [trace.y, trace.customdata]);
    }"""
    grows, gru = page.evaluate(course, "Accuracy on previous levels")
    assert grows[0] == [None, 0.9, 0.85, 0.8]  # mean of what is 0.1 worse for each level away
    assert grows[1] == [0, 5, 4, 1]
    assert gru[1] == [0, 5]
    current = page.evaluate(course, "Accuracy on the current level")
    assert current[0][0] == [1, 1, 1, 1]
    future = page.evaluate(course, "Accuracy on future levels")
    assert future[0][0] == [0.8, 0.85, 0.9, None]
    maps = "() => [...document.querySelectorAll('.matrices .plot')].map(p => p.data[0].z.length)"
    assert page.evaluate(maps) == [4, 2]
    assert page.locator(".heading", has_text="Accuracy by level").count() == 1


def test_the_key_of_levels_leaves_the_axis_free(page: Any) -> None:
    figures = page.locator(".curves figure", has_text="current, previous and future levels")
    assert figures.count() == 2
    for figure in figures.all():
        key, axis = (figure.locator(one).bounding_box() for one in (".legend", ".xtitle"))
        assert key["y"] + key["height"] <= axis["y"] or key["y"] >= axis["y"] + axis["height"]
        ticks = figure.locator(".xtick text").first.bounding_box()
        assert key["y"] + key["height"] <= ticks["y"]


def test_smoothing_moves_lines_and_gives_them_back(page: Any) -> None:
    ys = """() => {
        const plots = [...document.querySelectorAll('.curves .plot')];
        const plot = plots.find(p => p.data.some(t => t.meta.kind === 'band'));
        return plot.data.map(t => [t.meta.kind, [...t.y]]);
    }"""
    by_level = "document.querySelectorAll('.curves .plot')[1].data[0].y"
    levels = page.evaluate(by_level)
    before = page.evaluate(ys)
    slide = """value => {
        const slider = document.querySelector('[data-smooth]');
        slider.value = value;
        slider.dispatchEvent(new Event('input', { bubbles: true }));
    }"""
    page.evaluate(slide, "0.5")
    assert page.evaluate(by_level) == levels  # which are few, and no noise
    after = page.evaluate(ys)
    for (kind, raw), (_, smooth) in zip(before, after, strict=True):
        if kind == "band":
            assert smooth == raw
            continue
        assert smooth[0] == pytest.approx(raw[0])
        assert smooth[1] == pytest.approx((0.5 * 0.5 * raw[0] + 0.5 * raw[1]) / 0.75)
    page.evaluate(slide, "0")
    assert page.evaluate(ys) == before


def test_a_run_opens_with_its_curves_configuration_and_environment(page: Any) -> None:
    page.locator(".runs .open").nth(2).click()  # the third seed of the first variant
    dialog = page.locator("#run")
    assert dialog.is_visible()
    assert dialog.locator("h2").text_content() == "<i>grows</i>, seed 2"
    assert page.url.endswith("#run-1-2")
    assert dialog.locator(".js-line").count() >= 3
    dialog.locator("summary", has_text="Configuration").click()
    assert "\nseed = 2\n" in dialog.locator("pre").text_content()
    dialog.locator("summary", has_text="Environment").click()
    assert "2.13.0" in dialog.locator("dd", has_text="2.13.0").text_content()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert "#" not in page.url


def test_a_link_to_a_run_opens_it(visit: Any, address: str) -> None:
    page = visit(f"{address}#run-1-3")
    assert page.locator("#run h2").text_content() == "LSTM, seed 0"
    page.close()


def test_images_are_shown_and_what_is_inside_is_drawn_when_near(page: Any) -> None:
    sizes = "() => [...document.querySelectorAll('.gallery img')].map(i => [i.naturalWidth, i.alt])"
    page.evaluate("document.querySelector('.inside').scrollIntoView()")
    page.locator(".inside .js-line").first.wait_for(timeout=20_000)
    page.wait_for_function("() => [...document.images].every(i => i.complete)")
    assert page.evaluate(sizes) == [
        [4, f"Image {number} generated by <i>grows</i>"] for number in (1, 2)
    ]
    assert "It forgets <b>slowly</b>." in page.locator(".inside .caption").last.text_content()


def test_seeds_are_shown_as_violins(page: Any) -> None:
    assert page.locator(".violinlayer .trace").count() == 2


def test_keys_do_what_the_page_says(page: Any) -> None:
    page.evaluate("scrollTo(0, 0); document.activeElement.blur()")
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.hash") == "#chapter-1-results"
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.hash") == "#chapter-1-curves"
    page.keyboard.press("p")
    assert page.evaluate("document.activeElement.hash") == "#chapter-1-results"
    box = page.locator("[data-kind=seed]")
    for wanted in (True, False):
        page.keyboard.press("s")
        assert box.is_checked() == wanted
    for scale in ("linear", "log", ""):
        page.keyboard.press("l")
        assert page.locator("[data-scale]").input_value() == scale
    page.keyboard.press("d")
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.keyboard.press("d")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    assert page.complaints == []


def test_a_figure_is_zoomed_and_moved_by_keys(visit: Any, address: str) -> None:
    opened = visit(address, color_scheme="dark")
    plot = "document.querySelector('.plot')"
    opened.locator("[data-smooth]").first.focus()
    opened.keyboard.press("Tab")
    look = "getComputedStyle(document.activeElement)"
    accent = opened.evaluate("getComputedStyle(document.querySelector('.open')).color")
    assert opened.evaluate(f"[{look}.outlineWidth, {look}.outlineColor]") == ["2px", accent]
    for key, wanted in (
        ("+", [252.5, 757.5]),
        ("ArrowRight", [378.75, 883.75]),
        ("-", [126.25, 1136.25]),
        ("ArrowLeft", [-126.25, 883.75]),
        ("n", [-126.25, 883.75]),
    ):
        opened.keyboard.press(key)
        assert opened.evaluate(f"{plot}.layout.xaxis.range") == pytest.approx(wanted)
    opened.locator(".modebar-btn").first.focus()
    opened.keyboard.press("0")
    assert opened.evaluate(f"{plot}.layout.xaxis.range") == [0, 1010]
    assert opened.complaints == []
    opened.close()


def test_a_png_holds_the_levels_of_the_image() -> None:
    image = torch.tensor([[[0.0, 1.0, 0.5], [2.0, -1.0, 0.2]]])
    raw = png(image)
    start = raw.index(b"IDAT") + 4
    assert raw[16:24] == bytes([0, 0, 0, 3, 0, 0, 0, 2])  # columns, rows
    assert zlib.decompress(raw[start : raw.index(b"IEND") - 8]) == bytes(
        [0, 0, 255, 128, 0, 255, 0, 51]
    )
    assert png(torch.rand(3, 4, 4))[25] == 2  # colours
    model = DRAW((1, 6, 6), hidden_size=4, latent_size=2, steps=2)
    assert len(gallery(model, 3)) == 3
    assert gallery(nn.Linear(2, 2)) == []


@pytest.fixture(scope="module")
def many(visit: Any, write_run: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Eight variants, of which the settings differ by numbers that do not sort as text."""
    root = tmp_path_factory.mktemp("many")
    for number, rate in enumerate((0.1, 0.01, 1e-05, 0.002, 0.05, 0.2, 1.0, 0.5)):
        write_run(root / "runs", f"{number} variant", config={"optimiser": {"lr": rate}})
    write_run(root / "few", "alone", config={"experiment": "few"})
    write(build(load_runs([root / "runs", root / "few"])), root / "report.html")
    opened = visit((root / "report.html").as_uri(), viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


def table_under(page: Any, heading: str) -> Any:
    section = page.locator("section", has=page.locator(f"#{heading}"))
    return section.locator("table").first, section.locator("[data-filter]")


@pytest.mark.parametrize("name", ["results", "runs", "configuration"])
def test_every_long_table_sorts_and_filters(many: Any, name: str) -> None:
    table, box = table_under(many, f"chapter-1-{name}")
    assert box.count() == 1
    box.fill("3 VAR")
    assert table.locator("tbody tr:visible").count() == 1
    assert "1 of 8 rows" in box.locator("xpath=ancestor::p").text_content()
    box.fill("")
    assert table.locator("tbody tr:visible").count() == 8
    heads = table.locator("thead th:not(.strip)")
    assert heads.locator("button.sort").count() == heads.count()
    heads.filter(has_text="Variant").locator("button").click()
    heads.filter(has_text="Variant").locator("button").click()
    assert table.locator("tbody tr").first.text_content().strip().find("7 variant") >= 0
    assert many.complaints == []


def test_settings_sort_as_numbers_and_short_tables_have_no_filter(many: Any) -> None:
    table, _ = table_under(many, "chapter-1-configuration")
    table.locator("th", has_text="optimiser.lr").locator("button").click()
    rates = table.locator("tbody tr > td:last-child").all_text_contents()
    assert rates == sorted(rates, key=float)
    assert table_under(many, "chapter-2-results")[1].count() == 0


SCORES = {
    "few": ("accuracy", "loss"),
    "many": ("accuracy", *(f"accuracy_on_average_{number}" for number in range(8))),
}


@pytest.mark.parametrize("width", [1280, 1440])
@pytest.mark.parametrize("measures", ["few", "many"])
def test_results_fit_or_say_that_there_is_more(
    visit: Any, write_run: Any, tmp_path: Path, width: int, measures: str
) -> None:
    for label in ("MetaSGD-CL", "HAT, 400 wide, lr 0.05"):
        for seed in range(3):
            path = write_run(tmp_path / "runs", label, seed) / "done.json"
            scores = dict.fromkeys(SCORES[measures], 0.5 + 0.01 * seed)
            path.write_text(json.dumps(json.loads(path.read_text()) | {"test": scores}))
    write_run(tmp_path / "runs", "MetaSGD-CL", 3, status="failed")
    write(build(load_runs([tmp_path / "runs"])), tmp_path / "report.html")
    page = visit((tmp_path / "report.html").as_uri(), viewport={"width": width, "height": 900})
    frame = page.locator(".scroll", has=page.locator(".results"))
    beyond = frame.evaluate("e => e.scrollWidth - e.clientWidth")
    assert (beyond > 1) == (measures == "many")
    note = page.locator(".more").first
    assert note.is_visible() == (measures == "many")
    assert "scroll it sideways" in note.text_content()
    page.close()


def test_what_is_far_down_is_drawn_when_a_reader_comes_near_or_sets_it(
    visit: Any, write_run: Any, tmp_path: Path
) -> None:
    for number in range(9):
        write_run(tmp_path / "runs", "LSTM", config={"experiment": f"part-{number}"})
    write(build(load_runs([tmp_path / "runs"])), tmp_path / "report.html")
    page = visit((tmp_path / "report.html").as_uri(), viewport={"width": 1280, "height": 900})
    assert page.locator(".plot").count() == 36
    assert page.locator(".drawn").count() == 24
    page.locator("#chapter-8-curves").scroll_into_view_if_needed()
    page.locator("#chapter-8 .js-line").first.wait_for(timeout=20_000)
    assert page.locator("#chapter-9 .drawn").count() == 0
    page.evaluate("""() => {
        const scale = document.querySelector("#chapter-9 [data-scale]");
        scale.value = "linear";
        scale.dispatchEvent(new Event("change", { bubbles: true }));
    }""")
    types = "[...document.querySelectorAll('#chapter-9 .plot')].map(p => p.layout.yaxis.type)"
    assert page.evaluate(types) == ["linear"] * 4
    assert page.complaints == []
    page.close()
