"""What pyproject.toml, the changelog and the citation say of the package agrees."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"all", "build", "dev", "docs"}
"""Extras that are not a part of attractor for users."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def named(requirement: str) -> str:
    """The package of a requirement, as indexes spell it."""
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_all_names_every_extra_of_users(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    listed = re.fullmatch(r"attractor\[([\w,]+)\]", everything)
    assert listed
    assert listed[1].split(",") == sorted(extras.keys() - OURS)


def test_what_an_extra_brings_is_there_for_the_tests(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    brought = {extra: {named(one) for one in extras[extra]} for extra in extras.keys() - OURS}
    tested = {named(one) for one in extras["dev"]}
    left = {extra for extra, packages in brought.items() if not packages <= tested}
    assert left == {"mlflow", "wandb"}, "which `make slow` installs"


def test_one_version(project: dict[str, Any]) -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)
    assert released
    assert f"\nversion: {project['version']}\n" in citation
    assert sections[:2] == ["Unreleased", f"{project['version']} - {released[1]}"]


def test_typed(project: dict[str, Any]) -> None:
    assert "Typing :: Typed" in project["classifiers"]
    assert (ROOT / "src/attractor/py.typed").exists()
    assert (ROOT / "src/attractor/cells/layer/named.pyi").exists()
