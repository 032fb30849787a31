"""Learned rules on disk."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from attractor import optimisers
from attractor.errors import InputError
from attractor.experiments.kinds.meta import Meta, begun
from attractor.experiments.rules import named
from attractor.optimisers import (
    DMSGD,
    OPTIMISERS,
    LSTMOptimiser,
    MetaSGD,
    load_rule,
    save_rule,
    shipped,
)
from attractor.optimisers.choose import choose
from attractor.optimisers.files import about, load_pretrained


def rewritten(path: Path, header: dict[str, str], **weights: torch.Tensor) -> None:
    """The file with other things in it."""
    with safe_open(path, "pt") as file:
        found = file.metadata() | header
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    kept = {name: value for name, value in found.items() if value != "gone"}
    save_file(tensors | weights, path, kept)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_rule(DMSGD(hidden_size=4), tmp_path / "r.safetensors", about={"tasks": ["mnist"]})
    return tmp_path / "r.safetensors"


def test_what_is_in_a_file(path: Path) -> None:
    told = about(path)
    assert told["kind"] == "dmsgd"
    assert told["tasks"] == ["mnist"]
    assert told["options"]["hidden_size"] == 4


def test_options_of_the_cell_are_kept(tmp_path: Path) -> None:
    save_rule(LSTMOptimiser(cell="decaynet", length=7), tmp_path / "r.safetensors")
    loaded: Any = load_rule(tmp_path / "r.safetensors")
    assert [cell.length for cell in loaded.stack.cells] == [7, 7]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ({"version": "2"}, "version 1 of the rule 'dmsgd' in .* but got 2. Meta-train it again"),
        ({"kind": "dsgd"}, "known kind of learned optimiser in .* Did you mean 'dmsgd'"),
        ({"kind": "lstm"}, "do not fit its options: the file is damaged"),
        ({"options": json.dumps({"hidden_size": 5})}, "the file is damaged"),
        ({"options": json.dumps({"width": 5})}, "the file is damaged"),
        ({"options": json.dumps({"size": -5})}, "the file is damaged"),
        ({"options": "{"}, "the file is damaged"),
        ({"options": "gone"}, "holds something else"),
        ({"attractor": "model"}, "holds something else"),
    ],
)
def test_other_contents(path: Path, header: dict[str, str], text: str) -> None:
    rewritten(path, header)
    with pytest.raises(InputError, match=text):
        load_rule(path)


@pytest.mark.parametrize("told", ["tasks: mnist", "3", '"mnist"'])
def test_a_card_that_is_no_card(path: Path, told: str) -> None:
    rewritten(path, {"about": told})
    with pytest.raises(InputError, match="the card of a rule in .* the file is damaged"):
        about(path)
    load_rule(path)


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="options and about of plain values.*not JSON serial"):
        save_rule(DMSGD(), tmp_path / "r.safetensors", about={"curve": torch.ones(2)})
    assert not list(tmp_path.iterdir())


def test_weights_that_are_not_the_rules(path: Path) -> None:
    rewritten(path, {}, static=torch.zeros(2))
    with pytest.raises(InputError, match="they do not fit its options"):
        load_rule(path)


def test_damaged_or_missing(path: Path) -> None:
    whole = path.read_bytes()
    for damaged in (whole[:-7], whole[:5], b"", b"\x00" * 100, whole[50:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is damaged or of another kind. Get it again"):
            load_rule(path)
    with pytest.raises(InputError, match="there is no .*nowhere"):
        load_rule(path.with_name("nowhere"))


@pytest.mark.parametrize("name", sorted(n for n, e in OPTIMISERS.items() if e.learned))
def test_rules_without_weights_say_how_to_get_some(name: str) -> None:
    kind = OPTIMISERS[name].kind
    if any(one.startswith(f"{name}/") for one in shipped()):
        assert kind.pretrained().key == name
        return
    with pytest.raises(InputError, match=f"but {name} does not: ") as found:
        kind.pretrained()
    told = str(found.value)
    assert "eta-train" in told
    assert ("one size" in told) == (name in {"global", "meta_sgd", "m2sgd_global"})
    assert ("no weights of it come with attractor" in told) == ("one size" not in told)
    loader = {"celo": "load_celo", "velo": "load_velo", "small_fc": "load_published"}.get(name)
    assert ("optimisers.load_" in told) == (loader is not None)
    if loader is not None:
        assert f"attractor.optimisers.{loader}," in told
        assert callable(getattr(optimisers, loader))


def test_what_is_no_rule_has_no_weights() -> None:
    with pytest.raises(InputError, match="known learned optimiser .*Did you mean 'lstm'"):
        load_pretrained("lsmt")


def test_a_network_is_not_a_rule(tmp_path: Path) -> None:
    save_file(torch.nn.Linear(2, 2).state_dict(), tmp_path / "net.safetensors")
    with pytest.raises(InputError, match="holds something else. Write one with `attractor meta"):
        load_rule(tmp_path / "net.safetensors")


class Half(MetaSGD):
    """A rule of a user's own."""

    key = "half"


def test_a_rule_of_ones_own_is_loaded_by_its_class(tmp_path: Path) -> None:
    path = tmp_path / "half.safetensors"
    save_rule(Half(size=3, rate=0.3), path)
    assert load_rule(path, Half).state_dict()["rates"].tolist() == pytest.approx([0.3] * 3)
    with pytest.raises(InputError, match="known kind .* of your own, load_rule.path, kind=...."):
        load_rule(path)
    with pytest.raises(InputError, match="expected the weights of meta_sgd in .* are of half"):
        load_rule(path, MetaSGD)


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rule whose cell is of a module that is gone from memory, and leaves a mark if imported."""
    mark = tmp_path / "imported"
    lines = ["from attractor.cells import GRUCell", f"open({str(mark)!r}, 'w').close()"]
    (tmp_path / "strange_cells.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    save_rule(LSTMOptimiser(cell=CELL, hidden_size=3), tmp_path / "r.safetensors")
    del sys.modules["strange_cells"]
    mark.unlink()
    return tmp_path / "r.safetensors"


CELL = "strange_cells:GRUCell"
REFUSED = f"its cell is '{CELL}', code that would be imported and called. .* code=\\['{CELL}'\\]"


def test_a_file_that_names_code_is_refused(strange: Path) -> None:
    model = torch.nn.Linear(3, 1)
    ways: tuple[Callable[[], Any], ...] = (
        lambda: load_rule(strange),
        lambda: named(str(strange)),
        lambda: load_rule(strange, LSTMOptimiser, code=["strange_cells:LSTMCell"]),
        lambda: choose({"name": "lstm", "pretrained": str(strange)}, model),
        lambda: choose({"name": "lstm", "pretrained": str(strange), "cell": "os:system"}, model),
    )
    for load in ways:
        with pytest.raises(InputError, match=REFUSED):
            load()
    assert about(strange)["options"]["cell"] == CELL
    assert not strange.with_name("imported").exists()


def test_code_that_is_named_beside_the_file_may_stand_in_it(strange: Path) -> None:
    rule: Any = load_rule(strange, code=[CELL])
    assert type(rule.stack.cells[0]).__name__ == "GRUCell"
    spec = {"name": "lstm", "pretrained": str(strange), "cell": CELL}
    found: Any = choose(spec, torch.nn.Linear(3, 1))
    assert found.options["cell"] == CELL
    rule = LSTMOptimiser(cell=CELL, hidden_size=3)  # of a configuration, which goes on from a file
    begun(rule, Meta(start=str(strange)))
    for more in ({"hidden_size": 3}, {"cell": "gru"}, {"head": CELL}):
        with pytest.raises(InputError, match="expected no options beside the weights"):
            choose({**spec, **more}, torch.nn.Linear(3, 1))


def test_code_that_a_file_does_not_name_is_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "r.safetensors"
    save_rule(LSTMOptimiser(), path)
    with pytest.raises(InputError, match="expected no options beside the weights .* but got cell"):
        choose({"name": "lstm", "pretrained": str(path), "cell": CELL}, torch.nn.Linear(3, 1))
