"""What the classifier and the regressor have in common: from series and answers to a network."""

import logging
import math
import time
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor, nn
from torch.utils.data import TensorDataset

from attractor.checks import flag, number, positive, whole
from attractor.errors import InputError, shortened
from attractor.estimators.answers import expect_one_each
from attractor.estimators.sequences import sequences
from attractor.estimators.weights import WeightedClasses
from attractor.models.table import make_model
from attractor.optimisers.table import optimiser_entry
from attractor.tasks import Batch, Data
from attractor.tasks.answers import answer
from attractor.tasks.series import Scaled, held_rows, rows_of
from attractor.training import Diverged, Fitted, Row, fit

logger = logging.getLogger(__name__)

SMALLEST, LARGEST = 4, 32
"""Series in a batch, an eighth of those there are, is between these."""
AT_ONCE = 256
"""Series that are answered at once."""
OWN = ("cell", "hidden_size", "num_layers", "bidirectional", "name", "bound", "generator")
"""What is not for the options to say."""
USUAL: dict[str, dict[str, Any]] = {"nru": {"average_heads": True, "feedback": 0.0}}
"""Options that a cell has here unless others are given: an NRU that does not run away."""


class RecurrentEstimator(BaseEstimator, ABC):
    """A recurrent network behind scikit-learn's interface; see `RecurrentClassifier`."""

    PATIENCE = 20
    """Epochs that ``patience="auto"`` stands for."""

    def __init__(
        self,
        cell: Any = "lstm",
        hidden_size: int | Sequence[int] = 64,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        options: Mapping[str, Any] | None = None,
        optimiser: Any = "adam",
        learning_rate: float | None = 0.005,
        epochs: int = 100,
        batch_size: int | None = None,
        validation: float = 0.2,
        patience: int | Literal["auto"] | None = "auto",
        clip: float | None = 1.0,
        normalise: bool = True,
        seconds: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.cell = cell
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bidirectional = bidirectional
        self.options = options
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.validation = validation
        self.patience = patience
        self.clip = clip
        self.normalise = normalise
        self.seconds = seconds
        self.random_state = random_state

    network_: nn.Module
    spec_: dict[str, Any]
    scaler_: Scaled
    n_features_in_: int
    history_: list[Row]
    valid_: dict[str, float]
    held_: list[int]
    learning_rate_: float | None

    def _data(self, given: Any, y: Tensor) -> Data:
        """Series with an answer each."""
        x, lengths = sequences(given)
        expect_one_each(len(x), len(y))
        if len(x) < 2:
            raise InputError(
                "expected at least two series to learn from, but got 1 sample. Give more."
            )
        return Data(x, y, lengths)

    def _train(
        self,
        data: Data,
        groups: Tensor,
        outputs: int,
        idle: float,
        on_rows: Callable[[list[Row]], None] | None,
        stop: Callable[[], bool],
        weights: Tensor | None = None,
    ) -> Self:
        """Fit a network with so many outputs; a share of each group is for validation.

        With `weights` the loss of a series counts as that of its class says.

        Where training comes to nothing, it begins anew with a tenth of the learning rate, at most
        twice: where numbers are no longer finite, or where the best loss on the share held back is
        more than twice `idle`, the loss of one who does not look at the series.
        """
        share = number("validation", self.validation, 0, 0.9)
        if share == 0 and self.patience not in ("auto", None):
            raise InputError(
                f"expected no patience={self.patience} beside validation=0, which holds nothing "
                "back to be patient about, but got both. Leave one of them out."
            )
        limit = math.inf if self.seconds is None else positive("seconds", self.seconds)
        seed = _seed(self.random_state)
        generator = Generator().manual_seed(seed)
        _expect_held(groups, share)
        held = held_rows(groups, share, generator=generator)
        kept = sorted({*range(len(groups))} - {*held})
        scaler = Scaled.of(rows_of(data, kept))
        if not flag("normalise", self.normalise):
            scaler = Scaled(torch.zeros_like(scaler.mean), torch.ones_like(scaler.std))
        train = _dataset(rows_of(data, kept), scaler)
        valid = _dataset(rows_of(data, held), scaler) if held else None
        spec = deepcopy(self._spec())
        deadline = time.monotonic() + limit

        def over() -> bool:
            return stop() or time.monotonic() > deadline

        rate = self.learning_rate
        rate = None if rate is None else positive("learning_rate", rate)
        for left in (2, 1, 0):
            network = self._network(data.x.shape[2], outputs, seed)
            try:
                fitted = self._attempt(network, train, valid, weights, seed, rate, over, on_rows)
            except Diverged:
                if not left or rate is None or over():
                    raise
            else:
                lost = fitted.valid.get("loss", 0.0) > 2 * idle
                if not (lost and left and rate is not None and not over()):
                    break
            rate = rate / 10
            logger.warning("training came to nothing; it begins anew with a rate of %g", rate)
        # all at the end: a fit that is refused leaves the one before whole
        self.scaler_, self.n_features_in_, self.held_ = scaler, data.x.shape[2], held
        self.network_, self.spec_, self.learning_rate_ = fitted.model.eval(), spec, rate
        self.history_, self.valid_ = fitted.rows, fitted.valid
        return self

    def _attempt(
        self,
        network: nn.Module,
        train: TensorDataset,
        valid: TensorDataset | None,
        weights: Tensor | None,
        seed: int,
        rate: float | None,
        over: Callable[[], bool],
        on_rows: Callable[[list[Row]], None] | None,
    ) -> Fitted:
        """Train a network with a learning rate, until it is over at the latest."""
        size = self._batch_size(len(train))
        epoch = math.ceil(len(train) / size)
        watched: dict[str, Any] = {"eval_every": None}
        if valid is not None:
            patience = self.PATIENCE if self.patience == "auto" else self.patience
            watched = {"eval_every": epoch, "patience": patience, "keep_best": True}

        def told(rows: list[Row]) -> None:
            if on_rows is not None:
                on_rows([{"epoch": row["step"] // epoch, **row} for row in rows])

        return fit(
            network,
            train if weights is None else WeightedClasses(weights, train, valid),
            valid=valid if weights is None else None,
            optimiser=self._optimiser(rate),
            steps=epoch * whole("epochs", self.epochs, 1),
            seed=seed,
            on_rows=told,
            stop=over,
            batch_size=size,
            clip=self.clip,
            log_every=epoch,
            eval_batch_size=AT_ONCE,
            **watched,
        )

    def _batch_size(self, samples: int) -> int:
        if self.batch_size is None:
            return min(max(SMALLEST, min(samples // 8, LARGEST)), samples)
        size = whole("batch_size", self.batch_size, 1)
        if size > samples:
            raise InputError(
                f"expected at least batch_size={self.batch_size} series to train on, but got "
                f"{samples}. Try batch_size=None, which takes a part of those there are."
            )
        return size

    def _network(self, features: int, outputs: int, seed: int) -> nn.Module:
        return network_of(self._spec(), features, outputs, seed)

    def _spec(self) -> dict[str, Any]:
        """What the network is made of, as `network_of` takes it."""
        options = {} if self.options is None else self.options
        if not isinstance(options, Mapping):
            raise InputError(
                f"expected options to be a dictionary, but got {shortened(options)}. Try "
                'options={"learn_initial_state": True}.'
            )
        for name in OWN:
            if name in options:
                own = name in self.get_params(deep=False)
                hint = f"Try {type(self).__name__}({name}=...)." if own else "Leave it out."
                raise InputError(
                    "expected options of the layer and of the cell, but got "
                    f"{name!r} among them. {hint}"
                )
        usual = USUAL.get(self.cell, {}) if isinstance(self.cell, str) else {}
        return {
            "cell": self.cell,
            **self._sizes(),
            "bidirectional": flag("bidirectional", self.bidirectional),
            **usual,
            **options,
        }

    def _sizes(self) -> dict[str, Any]:
        """The units of a layer and how many layers there are, or the units of each."""
        layers, size = whole("num_layers", self.num_layers, 1), self.hidden_size
        if not isinstance(size, list | tuple):
            return {"hidden_size": whole("hidden_size", size, 1), "num_layers": layers}
        if not size or layers not in (1, len(size)):
            raise InputError(
                f"expected hidden_size to have an entry for each layer, but got {len(size)} and "
                f"num_layers={layers}. Leave num_layers out."
            )
        return {"hidden": [whole("hidden_size", one, 1) for one in size]}

    def _optimiser(self, rate: float | None) -> Any:
        spec = self.optimiser
        if rate is None:
            return spec
        options = {"name": spec} if isinstance(spec, str) else spec
        own = not isinstance(options, Mapping) or "lr" in options
        if own or optimiser_entry(options.get("name")).learned:
            raise InputError(
                f"expected learning_rate=None beside the optimiser {spec!r}, which decides its "
                f"steps itself, but got {rate}. Leave one of them out."
            )
        return {**options, "lr": rate}

    @torch.no_grad()
    def _said(self, given: Any) -> Tensor:
        """What the network says to series, in double precision ``(n, outputs)``."""
        check_is_fitted(self, "network_")
        x, lengths = sequences(given)
        if x.shape[2] != self.n_features_in_:
            raise InputError(
                f"X has {x.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Give series with the features that it "
                "was fitted on, (n, time, features), and one alone as X[None]."
            )
        # doubles, so that an answer does not depend on which series are asked about beside it
        network = deepcopy(self.network_).double()
        said = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for start in range(0, len(x), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                ends = None if lengths is None else lengths[some]
                asked = self.scaler_(x[some])
                said.append(answer(network, Batch(asked, torch.zeros(len(asked)), ends)))
        return torch.cat(said)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def network_of(spec: dict[str, Any], features: int, outputs: int, seed: int) -> nn.Module:
    """A new network in single precision, whatever torch's default type is.

    Args:
        spec: of what it is made, as of a model in a configuration.
        features: of a step.
        outputs: classes, or numbers.
        seed: decides its weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn = Generator().manual_seed(seed)
        return make_model(spec, [features], outputs, generator=drawn).float()


def _seed(state: Any) -> int:
    """A seed that scikit-learn's words for randomness stand for."""
    try:
        return int(check_random_state(state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(
            f"expected random_state to be a whole number, None or a numpy RandomState, but got "
            f"{state!r}. Try random_state=0."
        ) from error


def _expect_held(groups: Tensor, share: float) -> None:
    """Refuse classes that are all too small for a share of them to be a whole series."""
    sizes = groups.bincount()
    least = math.floor(0.5 / share) + 1 if share > 0 else 0
    if len(sizes) > 1 and int(sizes.max()) < least:
        many = 2 * len(sizes) > len(groups)
        hint = "RecurrentRegressor if they are numbers, or " if many else ""
        raise InputError(
            f"expected a class of at least {least} series to keep a share of {share:g} for "
            f"validation, but the largest of the {len(sizes)} classes has {int(sizes.max())} of "
            f"{len(groups)}. Try {hint}validation=0."
        )


def _dataset(data: Data, scaler: Scaled) -> TensorDataset:
    """The tensors of samples as a network reads them."""
    x = scaler(data.x).float()
    return TensorDataset(x, data.y, *([] if data.lengths is None else [data.lengths]))
