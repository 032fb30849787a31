"""From names to things: tables, modules of the user's own, and the one maker."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from attractor.errors import InputError
from attractor.tables import code_in, fits, lookup, make, search


class Box:
    """Something with options of many kinds."""

    def __init__(
        self,
        size: int,
        rate: float = 0.5,
        *,
        shape: Literal["round", "square"] = "round",
        lid: bool = False,
        sides: Sequence[int] | None = None,
        generator: object = None,
    ) -> None:
        self.made = {"size": size, "rate": rate, "shape": shape, "lid": lid, "sides": sides}
        self.generator = generator


def plain(size: int = 1) -> tuple[str, int]:
    return "plain", size


def loose(**options: Any) -> dict[str, Any]:
    if "bad" in options:
        raise TypeError("loose() cannot do with bad")
    return options


def broken(size: int = 1) -> None:
    raise TypeError("a mistake of its own")


TABLE: Mapping[str, Callable[..., Any]] = {
    "box": Box,
    "plain": plain,
    "loose": loose,
    "broken": broken,
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the user's in a folder that Python does not know, and its name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = "own_things_of_a_test"
    (tmp_path / f"{name}.py").write_text(
        "class Crate:\n    def __init__(self, size=3):\n        self.size = size\n\nNUMBER = 4\n"
    )
    (tmp_path / f"{name}_broken.py").write_text("raise RuntimeError('half written')\n")
    yield name
    sys.modules.pop(name, None)


def test_a_name_of_the_table() -> None:
    assert lookup("thing", TABLE, "box") is Box
    assert lookup("number", {"one": 1}, "one") == 1


@pytest.mark.parametrize("name", ["Boks", "BOX", 3, ["box"], None])
def test_an_unknown_name_tells_the_nearest(name: object) -> None:
    with pytest.raises(InputError, match="a known thing .box, broken, loose, plain., but got"):
        lookup("thing", TABLE, name)


def test_the_nearest_name_is_found_whatever_the_case() -> None:
    with pytest.raises(InputError, match="but got 'lstm'. Did you mean 'LSTM'"):
        lookup("model", {"LSTM": 1, "Elman": 2}, "lstm")


def test_a_class_of_the_users_own_is_found_in_the_current_folder(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert make("thing", TABLE, {"name": f"{module}:Crate", "size": 7}).size == 7


def test_and_in_a_folder_that_is_searched(module: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such module where Python looks, nor in the current"):
        lookup("thing", TABLE, f"{module}:Crate")
    search(tmp_path)
    search(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[-1] == str(tmp_path)  # after all else, so that it can shadow nothing
    assert lookup("thing", TABLE, f"{module}:Crate").__name__ == "Crate"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("{}:Crte", "known name in {} .Crate, NUMBER., but got 'Crte'. Did you mean 'Crate'"),
        ("{}:NUMBER", "'{}:NUMBER' to name a thing, but it is a value of type int"),
        ("{}_broken:X", "importing it raised RuntimeError: half written"),
        ("{}.inner:X", "for the thing '{}.inner:X'"),
        ("{}:", "as module:Class, but got '{}:'"),
        (":Crate", "as module:Class, but got ':Crate'"),
        ("{}:__import__('os')", "as module:Class, but got"),
        ("../{}:Crate", "as module:Class, but got"),
        ("a:b:c", "as module:Class, but got"),
    ],
)
def test_mistakes_in_own_names(module: str, tmp_path: Path, name: str, text: str) -> None:
    search(tmp_path)
    with pytest.raises(InputError, match=text.format(module)):
        lookup("thing", TABLE, name.format(module))


def test_make_passes_options_and_what_the_signature_asks_for() -> None:
    spec = {"name": "box", "size": 4, "rate": 2, "shape": "square", "sides": [1, 2]}
    box = make("thing", TABLE, spec, generator="g", root="r")
    wanted = {"size": 4, "rate": 2, "shape": "square", "lid": False, "sides": [1, 2]}
    assert (box.made, box.generator) == (wanted, "g")
    assert spec["name"] == "box"  # not changed
    assert make("thing", TABLE, "plain", generator="g") == ("plain", 1)
    assert make("thing", TABLE, {"name": "loose", "a": 1}, generator="g") == {"a": 1}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"name": "box", "size": 1, "rat": 2}, "option of the thing box .*'rat'. Did.* 'rate'"),
        ({"name": "box"}, "a value for the option 'size' of the thing box, but there is none"),
        ({"name": "box", "size": 2.5}, "'size' of the thing box to be a whole number, but got 2.5"),
        ({"name": "box", "size": True}, "'size' of the thing box to be a whole number"),
        ({"name": "box", "size": 1, "rate": "x"}, "'rate' of the thing box to be a number"),
        ({"name": "box", "size": 1, "lid": 1}, "'lid' of the thing box to be true or false"),
        ({"name": "box", "size": 1, "shape": "oval"}, "one of 'round', 'square', but got 'oval'"),
        ({"name": "box", "size": 1, "sides": ["a"]}, "'sides' of the thing box to be a list"),
        ({"name": "box", "size": 1, "sides": 3}, "'sides' of the thing box to be a list"),
        ({"name": "box", "size": 1, "generator": 3}, "known option of the thing box .lid, rate"),
        ({"name": "loose", "generator": 3}, "known option of the thing loose"),
        ({"name": "loose", "bad": 1}, "can use, but got .'bad': 1.: loose.. cannot do with bad"),
        ({"size": 1}, "as a name, or as a table with a name and options, but got .'size': 1."),
        (3, "as a name, or as a table with a name and options, but got 3. Try name = 'box'"),
        ({"name": "bix", "size": 1}, "known thing .* but got 'bix'. Did you mean 'box'"),
    ],
)
def test_mistakes_in_what_is_to_be_made(spec: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        make("thing", TABLE, spec, generator=None)


def test_a_mistake_of_the_thing_itself_is_not_blamed_on_its_options() -> None:
    with pytest.raises(TypeError, match="a mistake of its own"):
        make("thing", TABLE, "broken")


@pytest.mark.parametrize(
    ("value", "hint", "answer"),
    [
        (1, int | str, True),
        (1.5, int | str, False),
        (None, int | None, True),
        (None, int, False),
        ([1, 2.5], list[float], True),
        ([1, "x"], list[float], False),
        ([1, "x"], tuple[int, str], True),
        ("abc", Sequence[str], True),
        ({"a": 1}, dict[str, int], True),
        ({"a": 1}, int, False),
        ([1], int, False),
        (3, Any, True),
        (1, Literal[1, 2], True),
        (True, Literal[1, 2], False),
        ("f", Callable[..., Any], False),
        (len, Callable[..., Any], True),
    ],
)
def test_what_fits(value: Any, hint: Any, answer: bool) -> None:
    assert fits(value, hint) is answer


@pytest.mark.parametrize(
    "name",
    ["os:system", "os.path:join", "a:b.c", "os:", ":os", "os", "os:sys tem", "os::system", "1:2"],
)
def test_all_that_is_imported_is_found_before(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def importing(module: str) -> None:
        tried.append(module)
        raise ImportError

    monkeypatch.setattr("attractor.tables.import_module", importing)
    with pytest.raises(InputError):
        lookup("box", TABLE, name)
    assert [one for _, one in code_in(name)] == ([name] if tried else [])


def test_code_is_found_wherever_it_stands() -> None:
    content = {"a": {"b": ["x", {"c": "os:system"}]}, "d": ("a:b",), "e": 3, "f": "word: word"}
    assert list(code_in(content)) == [("a.b.c", "os:system"), ("d", "a:b")]
