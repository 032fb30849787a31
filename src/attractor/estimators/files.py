"""Fitted estimators on disk: a folder of plain numbers and JSON, never unpickled.

``model.json`` says what the model is and names the file of its tensors, whose name and sum go with
what is in it. So writing ``model.json`` is the one moment at which an old model becomes a new one.
"""

import hashlib
import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

from attractor.cells import CELLS
from attractor.errors import InputError, shortened, unknown
from attractor.estimators.base import RecurrentEstimator, network_of
from attractor.estimators.classifier import RecurrentClassifier
from attractor.estimators.regressor import RecurrentRegressor
from attractor.files import write_atomic
from attractor.tables import code_in
from attractor.tasks.series import Scaled

CARD = "model.json"
VERSION = 2
KINDS: dict[str, type[RecurrentEstimator]] = {
    "classifier": RecurrentClassifier,
    "regressor": RecurrentRegressor,
}


def save(model: RecurrentEstimator, folder: str | Path, *, force: bool = False) -> Path:
    """Write a fitted estimator into a folder, all at once: weights, scaler, classes, parameters.

    Args:
        model: fitted; its cell is one of the table, since code is not saved.
        folder: is made if it is not there.
        force: replace a model that is there; other files stay.

    Returns:
        The folder.

    Example:
        >>> import tempfile
        >>> X, y = np.random.default_rng(0).normal(size=(20, 5)), [0, 1] * 10
        >>> model = RecurrentClassifier("rnn", 4, epochs=1, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = load(save(model, folder))
        >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
        True
    """
    folder = Path(folder)
    expect_free(folder, force=force)
    card, tensors = _card(model), _tensors(model)
    raw = bytes_of(tensors)
    card["sha256"] = hashlib.sha256(raw).hexdigest()
    name = _weights(card)
    replaced = _replaced(folder)
    write_atomic(folder / name, raw)
    write_atomic(folder / CARD, json.dumps(card, indent=1) + "\n")
    if replaced not in (None, name):
        (folder / str(replaced)).unlink(missing_ok=True)
    return folder


def expect_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that a model cannot be written to, before any work is done for it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"expected a folder for a model, but {folder} is a file. Choose another name."
        )
    if (folder / CARD).exists() and not force:
        raise InputError(
            f"expected a folder without a model, but there is one in {folder}. Choose another, or "
            "replace it: force=True in Python, --force on the command line."
        )


def load(folder: str | Path) -> RecurrentEstimator:
    """The fitted estimator that `save` wrote.

    Args:
        folder: of the model.
    """
    folder = Path(folder)
    if not (folder / CARD).is_file():
        raise InputError(
            f"expected a model in {folder}, but there is no {CARD}. Write one with `attractor fit`."
        )
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if card["attractor"] != "estimator" or card["version"] not in (1, VERSION):
            raise InputError(
                f"expected a model of version {VERSION} in {folder}, but got "
                f"{card['attractor']!r} of version {card['version']!r}. Fit it again, or use the "
                "release that wrote it."
            )
        raw = (folder / _weights(card)).read_bytes()
        if hashlib.sha256(raw).hexdigest() != card["sha256"]:
            raise ValueError("the weights are not those that were saved")
        return _made(card, tensors_of(raw))
    except InputError:
        raise
    except (AttributeError, KeyError, OSError, RuntimeError, SafetensorError, TypeError) as error:
        raise _damaged(folder, error) from error
    except ValueError as error:
        raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> InputError:
    return InputError(
        f"expected a whole model in {folder}, but it is damaged: {' '.join(str(error).split())}. "
        "Fit it again."
    )


def _replaced(folder: Path) -> str | None:
    """The file of tensors of the model that is there, if it is one of ours; others are not."""
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        return _weights(card) if card["attractor"] == "estimator" else None
    except (KeyError, OSError, TypeError, ValueError):
        return None


def _weights(card: dict[str, Any]) -> str:
    """The file of the tensors, named by what is in it; never a path."""
    return f"weights-{int(card['sha256'][:16], 16):016x}.safetensors"


def _card(model: RecurrentEstimator) -> dict[str, Any]:
    """All of a model that is not a tensor, as JSON holds it."""
    kind = next((key for key, one in KINDS.items() if isinstance(model, one)), None)
    if kind is None or not hasattr(model, "network_"):
        raise InputError(
            f"expected a fitted estimator to save, but got {type(model).__name__}. Fit it first."
        )
    _expect_known(model.cell, model.spec_["cell"])
    params = _plain(model.get_params(deep=False))
    seed = params["random_state"]
    params["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    if isinstance(given := params.get("class_weight"), dict):  # whose keys need not be words
        params["class_weight"] = _plain([*given.items()])
    card: dict[str, Any] = {
        "attractor": "estimator",
        "version": VERSION,
        "kind": kind,
        "params": params,
        "network": _plain(model.spec_),
        "features": model.n_features_in_,
        "valid": model.valid_,
        "history": model.history_,
        "held": model.held_,
        "learning_rate": model.learning_rate_,
    }
    if isinstance(model, RecurrentClassifier):
        classes = model.classes_
        card["classes"] = {"type": classes.dtype.str, "names": classes.tolist()}
    elif isinstance(model, RecurrentRegressor):
        card["single"] = model.single_
    names = card.get("classes", {}).get("names")
    for name, value in {**params, "network": card["network"], "classes": names}.items():
        if not _is_plain(value):
            raise InputError(
                f"expected parameters and classes of plain values to save, but {name} is "
                f"{shortened(value)}. Give numbers, words, lists and dictionaries of these."
            )
    return card


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it is."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """A value in which numpy's numbers, as searches give them, are Python's, and tuples lists."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _expect_known(*cells: Any) -> None:
    each = [cell if isinstance(cell, list | tuple) else [cell] for cell in cells]
    for one in chain(*each):
        name = one.get("cell") if isinstance(one, dict) else one
        if not isinstance(name, str) or name not in CELLS:
            raise unknown("cell of a saved model, which holds no code", name, CELLS)


def _tensors(model: RecurrentEstimator) -> dict[str, Tensor]:
    found = {f"network.{name}": value for name, value in model.network_.state_dict().items()}
    found |= {"scaler.mean": model.scaler_.mean, "scaler.std": model.scaler_.std}
    if isinstance(model, RecurrentRegressor):
        found |= {"target.mean": model.target_mean_, "target.std": model.target_std_}
    return {name: value.detach().contiguous().clone() for name, value in found.items()}


def _made(card: dict[str, Any], tensors: dict[str, Tensor]) -> RecurrentEstimator:
    """The estimator that a card and its tensors are."""
    if card["kind"] not in KINDS:
        raise unknown("kind of estimator", card["kind"], KINDS)
    made_of = {one: card[one] for one in ("params", "network") if one in card}
    _expect_known(*(one["cell"] for one in made_of.values()))
    if found := next(code_in(made_of), None):
        key, name = found
        raise InputError(
            f"expected a model made of attractor's own parts, but its {key} is {name!r}, code that "
            "would be imported and called. A saved model holds no code: fit it again."
        )
    if card["version"] == 1 and card["params"]["cell"] == "nru":  # which had its equations' sum
        options = {"average_heads": False, "feedback": 1.0, **(card["params"]["options"] or {})}
        card["params"]["options"] = options
    if isinstance(given := card["params"].get("class_weight"), list):
        card["params"]["class_weight"] = dict(given)
    model = KINDS[card["kind"]](**card["params"])
    model.n_features_in_, model.held_ = int(card["features"]), list(card["held"])
    model.learning_rate_ = card["learning_rate"]
    model.valid_, model.history_ = dict(card["valid"]), list(card["history"])
    model.scaler_ = Scaled(tensors.pop("scaler.mean"), tensors.pop("scaler.std"))
    if isinstance(model, RecurrentClassifier):
        model.classes_ = np.array(card["classes"]["names"], dtype=np.dtype(card["classes"]["type"]))
        outputs = len(model.classes_)
    else:
        assert isinstance(model, RecurrentRegressor)
        model.single_ = bool(card["single"])
        model.target_mean_, model.target_std_ = tensors.pop("target.mean"), tensors["target.std"]
        outputs = len(tensors.pop("target.std"))
    model.spec_ = card["network"] if "network" in card else model._spec()  # older ones have none
    network = network_of(model.spec_, model.n_features_in_, outputs, 0)
    network.load_state_dict({name.removeprefix("network."): one for name, one in tensors.items()})
    model.network_ = network.eval()
    return model
