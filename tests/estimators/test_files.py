"""Fitted estimators in folders."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attractor.cells import NRUCell
from attractor.errors import InputError
from attractor.estimators import RecurrentClassifier, RecurrentRegressor, load, save
from attractor.estimators.files import CARD
from attractor.files import write_atomic
from estimators.test_estimators import quick, ragged, waves


def fitted(**more: Any) -> RecurrentClassifier:
    model: RecurrentClassifier = quick(epochs=2, **more).fit(*waves())
    return model


@pytest.mark.parametrize("names", [["b", "a"], [3, -1], [2.0, 5.0], [True, False]])
def test_a_classifier_comes_back_as_it_was(names: list[Any], tmp_path: Path) -> None:
    x, y = ragged()
    model = quick(cell="nru", options={"memory_size": 16}, epochs=2, num_layers=2)
    model.fit(x, np.array(names)[y].astype(object if names[0] == "b" else None))
    again = load(save(model, tmp_path / "model"))
    assert isinstance(again, RecurrentClassifier)
    assert again.get_params() == model.get_params()
    assert again.classes_.dtype == model.classes_.dtype
    assert (again.predict(x) == model.predict(x)).all()
    assert (again.predict_proba(x) == model.predict_proba(x)).all()
    assert again.history_ == model.history_


def test_an_nru_averages_its_heads_unless_told_or_saved_before_it_did(tmp_path: Path) -> None:
    def averages(model: Any) -> list[bool]:
        return [one.average_heads for one in model.network_.modules() if isinstance(one, NRUCell)]

    x, _ = waves()
    model = fitted(cell="nru")
    assert averages(model) == [True]
    assert averages(fitted(cell="nru", options={"memory_size": 16})) == [True]
    summed = fitted(cell="nru", options={"average_heads": False, "feedback": 1.0})
    assert averages(summed) == [False]
    card = json.loads((save(summed, tmp_path) / CARD).read_text())
    card["params"]["options"], card["version"] = None, 1
    del card["network"]
    (tmp_path / CARD).write_text(json.dumps(card))
    assert averages(load(tmp_path)) == [False]
    assert (load(tmp_path).predict_proba(x) == summed.predict_proba(x)).all()


def test_a_regressor_comes_back_as_it_was(tmp_path: Path) -> None:
    x, y = ragged()
    for answers in (7.0 * y + 100, np.stack([y, 30 * y], 1)):
        model = quick(RecurrentRegressor, epochs=2).fit(x, answers)
        again = load(save(model, tmp_path / "model", force=True))
        assert isinstance(again, RecurrentRegressor)
        assert (again.predict(x) == model.predict(x)).all()
        assert again.predict(x).shape == answers.shape


def test_a_model_is_replaced_only_if_asked_and_other_files_stay(tmp_path: Path) -> None:
    first, second = fitted(), fitted(random_state=9)
    save(first, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="there is one in .*force"):
        save(second, tmp_path)
    save(second, tmp_path, force=True)
    x, _ = waves()
    assert (load(tmp_path).predict_proba(x) == second.predict_proba(x)).all()
    assert len(list(tmp_path.glob("weights-*"))) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_only_the_weights_of_the_model_that_is_replaced_go(tmp_path: Path) -> None:
    mine = tmp_path / "weights-mine.safetensors"
    mine.write_text("mine")
    save(fitted(), tmp_path)
    save(fitted(), tmp_path, force=True)  # the same again
    assert len(list(tmp_path.glob("weights-*"))) == 2
    for card in ("{", "[]", '{"attractor": "other", "sha256": "0"}'):
        (tmp_path / CARD).write_text(card)
        save(fitted(), tmp_path, force=True)
    save(fitted(random_state=9), tmp_path, force=True)
    assert mine.read_text() == "mine"
    assert len(list(tmp_path.glob("weights-*"))) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_size": 9},
        {"cell": "nru"},
        {"num_layers": 2},
        {"options": {"reset": "after"}},
    ],
)
def test_a_model_is_saved_as_it_was_fitted_whatever_its_parameters_are_now(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    x, _ = waves()
    model = fitted()
    said = model.predict_proba(x)
    again = load(save(model.set_params(**changed), tmp_path))
    assert (again.predict_proba(x) == said).all()
    assert again.get_params() == model.get_params()
    assert again.spec_ == model.spec_
    assert (load(save(again, tmp_path, force=True)).predict_proba(x) == said).all()


def test_a_folder_that_does_not_say_what_its_network_is_made_of_still_loads(
    tmp_path: Path,
) -> None:
    x, _ = waves()
    model = fitted(cell="nru", options={"memory_size": 16})
    card = json.loads((save(model, tmp_path) / CARD).read_text())
    del card["network"]
    (tmp_path / CARD).write_text(json.dumps(card))
    assert (load(tmp_path).predict_proba(x) == model.predict_proba(x)).all()


def test_a_save_that_is_cut_off_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fitted()
    save(old, tmp_path)
    write = write_atomic

    def cut(path: Path, data: Any) -> None:
        if path.name == CARD:
            raise KeyboardInterrupt
        write(path, data)

    monkeypatch.setattr("attractor.estimators.files.write_atomic", cut)
    with pytest.raises(KeyboardInterrupt):
        save(fitted(random_state=9), tmp_path, force=True)
    x, _ = waves()
    assert (load(tmp_path).predict_proba(x) == old.predict_proba(x)).all()


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    from attractor.cells import LSTMCell

    with pytest.raises(InputError, match="expected a fitted estimator to save"):
        save(RecurrentClassifier(), tmp_path)
    with pytest.raises(InputError, match="cell of a saved model, which holds no code"):
        save(fitted(cell=LSTMCell), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file"):
        save(fitted(), tmp_path / "file")


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model.json. Write one with `attractor fit`"):
        load(tmp_path)
    save(fitted(), tmp_path)
    card = json.loads((tmp_path / CARD).read_text())
    (weights,) = tmp_path.glob("weights-*")
    raw = weights.read_bytes()

    def written(**changes: Any) -> None:
        (tmp_path / CARD).write_text(json.dumps({**card, **changes}))

    weights.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(InputError, match="the weights are not those that were saved"):
        load(tmp_path)
    weights.write_bytes(raw)
    for changes in (
        {"sha256": "../../etc/passwd"},
        {"network": {**card["network"], "hidden_size": 9}},
        {"params": {**card["params"], "nothing": 9}},
        {"classes": {"type": "O", "names": None}},
        {"features": "many"},
    ):
        written(**changes)
        with pytest.raises(InputError, match="is damaged"):
            load(tmp_path)
    written(params={**card["params"], "cell": "os:system"})
    with pytest.raises(InputError, match="which holds no code"):
        load(tmp_path)
    written(network={**card["network"], "cell": "os:system"})
    with pytest.raises(InputError, match="which holds no code"):
        load(tmp_path)
    for part in ("params", "network"):
        written(**{part: {**card[part], "name": "os:system"}})
        with pytest.raises(InputError, match=rf"but its {part}.name is 'os:system', code that"):
            load(tmp_path)
    written(version=3)
    with pytest.raises(InputError, match="version 2 .* but got 'estimator' of version 3"):
        load(tmp_path)
    (tmp_path / CARD).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        load(tmp_path)


def test_without_scikit_learn_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "attractor.estimators")
    with pytest.raises(InputError, match=r'Try pip install "attractor\[estimators\]"'):
        importlib.import_module("attractor.estimators")


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    x, y = waves()
    days = np.array(["2020-01-01", "2021-01-01"], "M8[D]")[(y == "fast").astype(int)]
    with pytest.raises(InputError, match="plain values to save, but classes is .*date"):
        save(quick(epochs=1).fit(x, days), tmp_path)
    with pytest.raises(InputError, match="plain values to save, but options is {'dropout': tensor"):
        save(fitted().set_params(options={"dropout": torch.zeros(1)}), tmp_path)


@pytest.mark.parametrize("seed", [None, np.int64(7), np.random.RandomState(7)])
def test_whatever_drew_the_weights_of_a_model_it_is_saved(seed: Any, tmp_path: Path) -> None:
    x, _ = waves()
    model = fitted(random_state=seed)
    again = load(save(model, tmp_path))
    assert (again.predict_proba(x) == model.predict_proba(x)).all()
    assert again.random_state == (7 if isinstance(seed, np.integer) else None)
