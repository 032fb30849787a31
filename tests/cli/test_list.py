"""What `attractor list` tells, and that it tells it at once."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from attractor.cli import catalogue
from attractor.cli.catalogue import TABLES, table_of
from attractor.cli.commands import app
from attractor.cli.entry import arguments, entry, sections
from attractor.errors import InputError
from attractor.optimisers import OPTIMISERS

TOLD = [kind for kind in TABLES if kind != "experiments"]
MARKUP = re.compile(r"[`$\\*]|\]\[|\]\(")


def test_experiments_are_listed_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['attractor', 'list', 'experiments']\n"
        "from attractor.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('heavy:', sorted({'torch', 'numpy', 'scipy', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "demo-continual" in done.stdout
    assert "heavy: []" in done.stdout


def _seconds(*arguments: str) -> float:
    """Of the processor, in a process of its own."""
    before = os.times()
    command = [sys.executable, "-m", "attractor.cli", *arguments]
    subprocess.run(command, capture_output=True, check=True)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def test_experiments_are_listed_at_once() -> None:
    """In 0.6 s where the help takes 0.17, side by side: a busy machine slows both down."""
    pairs = [(_seconds("list", "experiments"), _seconds("--help")) for _ in range(5)]
    listed, helped = (min(times) for times in zip(*pairs, strict=True))
    assert listed < 3.5 * helped


@pytest.mark.parametrize("kind", TOLD)
def test_every_entry_tells_its_options_its_paper_and_an_example(kind: str) -> None:
    for name in table_of(kind):
        found = entry(kind, name)
        assert found["what"]
        assert found["reference"], name
        assert found["example"], name
        silent = [option["option"] for option in found["options"] if not option["what"]]
        assert not silent, (name, silent)


@pytest.mark.parametrize("kind", TABLES)
def test_a_list_is_read_as_plain_words(kind: str) -> None:
    """A terminal shows neither roles nor equations nor quoted code."""
    marked = [row["what"] for row in getattr(catalogue, kind)() if MARKUP.search(row["what"])]
    assert marked == []


def test_markup_is_seen() -> None:
    for text in (":math:`T_g`", "of `DER`", "$x$", r"a \odot b", "**bold**", "[a][b]"):
        assert MARKUP.search(text)


def test_one_cell_in_words_and_json() -> None:
    words = CliRunner().invoke(app, ["list", "cells", "nru"]).stdout
    assert "nru: Non-saturating recurrent unit" in words
    assert "heads_read_input   True" in words
    assert "input_size         needed" in words
    assert "Chandar, Sarath; Sankar, Chinnadhurai" in words
    assert "(2019), Towards non-saturating" in words
    assert ">>> cell = NRUCell(3, 80, memory_size=64)" in words
    assert "generator" not in words.split("example:")[0]
    found = json.loads(CliRunner().invoke(app, ["list", "cells", "nru", "--json"]).stdout)
    told = {option["option"]: option for option in found["options"]}
    assert told["heads"]["default"] == "4"
    assert told["heads"]["what"] == "k, how many write and how many erase."


def test_one_of_torchs_optimisers_tells_of_itself() -> None:
    found = entry("optimisers", "rmsprop")
    assert found["what"] == "Implements RMSprop algorithm."
    told = {option["option"]: option for option in found["options"]}
    assert told["alpha"] == {
        "option": "alpha",
        "default": "0.99",
        "what": "smoothing constant",
    }
    assert told["centered"]["what"].startswith("if True, compute the centered RMSProp")
    assert "params" not in told
    code = "\n".join(line.removeprefix(">>> ") for line in found["example"].splitlines())
    names: dict[str, Any] = {"torch": torch}
    exec(code, names)
    assert isinstance(names["optimiser"], torch.optim.RMSprop)


@pytest.mark.parametrize("kind", TOLD)
def test_options_are_told_in_words_and_torchs_on_one_line(kind: str) -> None:
    for name in table_of(kind):
        found = entry(kind, name)
        assert "\\" not in found["what"] + "".join(one["what"] for one in found["options"])
        if kind == "optimisers" and not OPTIMISERS[name].learned:
            for option in found["options"]:
                assert len(option["what"]) < 180, (name, option)
                assert "default:" not in option["what"], (name, option)


def test_options_that_are_part_of_a_name_are_not_offered() -> None:
    adam, amsgrad = (entry("optimisers", name) for name in ("adam", "amsgrad"))
    assert {one["option"] for one in adam["options"]} - {
        one["option"] for one in amsgrad["options"]
    } == {"amsgrad"}
    assert amsgrad["what"] == "Implements Adam algorithm. With amsgrad=True."


def test_one_of_our_optimisers_tells_of_itself() -> None:
    found = entry("optimisers", "m2sgd")
    assert {one["option"] for one in found["options"]} == {*OPTIMISERS["m2sgd"].options}
    assert "M2SGD(" in found["example"]
    assert "Kuo" in found["reference"]


@pytest.mark.parametrize(("kind", "name"), [("cells", "nru"), ("optimisers", "adam")])
def test_one_entry_is_wrapped_where_the_output_is_no_terminal(kind: str, name: str) -> None:
    words = CliRunner().invoke(app, ["list", kind, name]).stdout
    assert max(map(len, words.splitlines())) <= 100
    assert "".join(words.split()).count("".join(entry(kind, name)["options"][-1]["what"].split()))


def test_models_in_words() -> None:
    words = CliRunner().invoke(app, ["list", "models"]).stdout
    assert "recurrent" in words
    assert "sequence" in words
    words = CliRunner().invoke(app, ["list", "models", "mlp"]).stdout
    assert "mlp: Multilayer perceptron" in words
    assert "units of each hidden layer" in words
    assert "Rumelhart, David E." in words
    assert ">>> model = MLP([784, 32, 10])" in words
    given = {"shape", "outputs", "generator", "sizes"}
    assert not given & {one["option"] for one in entry("models", "mlp")["options"]}


def test_an_experiment_tells_its_models() -> None:
    words = CliRunner().invoke(app, ["list", "experiments", "demo"]).stdout
    assert "--only 'GORU'" in words
    assert "reference" not in words
    assert "attractor run demo" in words


def test_an_experiment_tells_how_it_differs() -> None:
    words = CliRunner().invoke(app, ["list", "experiments", "copy-quick"]).stdout
    assert "with three symbols instead of ten" in words
    assert max(map(len, words.splitlines())) <= 110
    assert "three symbols" in entry("experiments", "copy-quick")["description"]


def test_a_wrong_name_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match="known strategy .* got 'EWC'. Did you mean 'ewc'"):
        entry("strategies", "EWC")


def test_parts_of_a_docstring() -> None:
    doc = "One.\n\nArgs:\n    a, b: both\n        of them: here.\n    c: ``x``.\n\n"
    doc += "More.\n\nExample:\n    >>> 1\n"
    found = sections(doc)
    assert set(found) == {"Args", "Example"}
    wanted = {"a": "both of them: here.", "b": "both of them: here.", "c": "x."}
    assert arguments(found["Args"]) == wanted
