"""The documentation is true: its code runs, its links lead somewhere, no public name is missing."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

import pytest

import attractor
from attractor import (
    cells,
    continual,
    dynamics,
    estimators,
    experiments,
    models,
    optimisers,
    report,
    results,
    tasks,
    training,
)
from attractor.experiments.train import train
from experiments.helpers import tiny

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(
    r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL
)
"""A block of code, and what it prints where that is shown right below it."""

NUMBER = re.compile(r"-?\d+\.\d+")

WHOLE = {
    "attractor.continual.metrics",
    "attractor.meta.bptt",
    "attractor.meta.compare",
    "attractor.meta.distribution",
    "attractor.meta.estimate",
    "attractor.meta.evolution",
    "attractor.meta.fewer",
    "attractor.meta.learners",
    "attractor.meta.problems",
    "attractor.meta.trainer",
    "attractor.meta.validation",
    "attractor.meta.whole",
}
"""Modules of which a page shows all."""

FIGURES = ("gallery", "look-inside")
"""Guides whose figures are drawn by the code that is beside them."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_code_runs_and_prints_what_is_shown(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.stem == "report":
        train(tiny("train.steps=5"), tmp_path / "runs")
    names: dict[str, object] = {"__name__": "example"}
    for block, shown in CODE.findall(page.read_text(encoding="utf-8")):
        capsys.readouterr()
        exec(compile(block, str(page.relative_to(ROOT)), "exec"), names)
        if shown:
            assert alike(capsys.readouterr().out, shown)
    if page.stem in FIGURES:
        shown_figures = {path.name for path in (page.parent / page.stem).iterdir()}
        assert {path.name for path in tmp_path.glob("*.svg")} == shown_figures


def alike(printed: str, shown: str) -> bool:
    """The same but for fractions, which may be a tenth, or 0.03, apart from machine to machine."""
    if NUMBER.sub("#", printed) != NUMBER.sub("#", shown):
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=0.1, abs=0.03) for a, b in pairs)


def test_what_differs_from_what_is_shown_is_seen() -> None:
    assert alike("loss 0.51 of 3\n", "loss 0.50 of 3\n")
    assert not alike("loss 0.61 of 3\n", "loss 0.50 of 3\n")
    assert not alike("loss 0.50 of 4\n", "loss 0.50 of 3\n")
    assert not alike("loss 0.50\n", "gain 0.50\n")


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", prose):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@each_page
def test_what_is_shown_from_the_code_is_there(page: Path) -> None:
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        try:
            resolve_name(name)
        except (AttributeError, ImportError, ValueError) as error:
            pytest.fail(f"{page.relative_to(ROOT)} shows {name}, which is not there: {error}")


@each_page
def test_what_is_shown_is_a_module_only_where_that_is_meant(page: Path) -> None:
    """A function is hidden by a module of its own name, which has no signature to be shown."""
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE):
        if name not in WHOLE and is_module(name):
            last = name.rpartition(".")[2]
            pytest.fail(
                f"{page.relative_to(ROOT)} shows the module {name}; try `::: {name}.{last}`, or "
                "add it to WHOLE if the whole module is meant"
            )


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what it is in is a class or the like
        return False


def test_a_module_is_told_from_what_is_in_it() -> None:
    assert is_module("attractor.training.fit")
    assert not is_module("attractor.training.fit.fit")
    assert not is_module("attractor.training.Plan")
    assert all(map(is_module, WHOLE))
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in sorted(WHOLE) if f"\n::: {name}\n" not in text] == []


def test_every_page_is_in_the_navigation() -> None:
    nav = str(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in nav


@pytest.mark.parametrize(
    "module",
    [
        attractor,
        cells,
        continual,
        dynamics,
        estimators,
        experiments,
        cells.memory,
        continual.replay,
        models,
        optimisers,
        report,
        results,
        tasks,
        tasks.streams,
        training,
    ],
)
def test_every_public_name_is_documented(module: ModuleType) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    public = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    # a name from elsewhere that the module merely uses is imported without `as`
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    exported = [name for name in public if re.search(rf"as {name}$", source, re.M)]
    missing = [name for name in exported if not re.search(rf"\b{name}\b", text)]
    assert exported
    assert missing == []


def test_every_folder_has_a_page() -> None:
    folders = [path.parent.name for path in (ROOT / "src/attractor").glob("*/__init__.py")]
    for folder in folders:
        assert (ROOT / "docs" / f"{folder}.md").exists(), f"docs/{folder}.md is missing"


def test_constraints_pin_everything_that_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        wanted += [] if name == "all" else extra  # which names the others
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    for requirement in wanted:
        name = re.split(r"[\[>=<]", requirement)[0].lower()
        assert name in pinned, f"{name} is not pinned in constraints.txt"


def test_changelog_names_every_cell_task_and_experiment() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    strategies, streams = continual.STRATEGIES, tasks.streams.STREAMS
    known = [*cells.CELLS, *tasks.TASKS, *experiments.EXPERIMENTS, *optimisers.OPTIMISERS]
    for key in [*known, *strategies, *streams]:
        assert f"`{key}`" in text, f"{key} is not in CHANGELOG.md"
