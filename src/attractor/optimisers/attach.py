"""Any optimiser on any network, shown what it needs: the one place where the two meet."""

import inspect
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from attractor.errors import InputError
from attractor.optimisers.learned import Learned
from attractor.optimisers.table import Entry, Maker
from attractor.optimisers.view import count


def attach(make: Maker, model: nn.Module, params: Iterable[Any] | None = None) -> Optimizer:
    """Build an optimiser on a model; a loop then just calls its ``step()``.

    An optimiser that wants to see what the model is shown (`MTL2L`) sees the input of each
    training pass from now on, and one that treats embeddings in another way (`Anytime`, `Pacer`)
    is told which they are; other optimisers are built as always. Other models, and copies of
    this one, want an optimiser of their own.

    Args:
        make: a rule, ``partial(torch.optim.SGD, lr=0.1)``, or what ``OPTIMISERS[name]()`` gives.
        model: is trained, and watched if need be.
        params: parameters or parameter groups; all of the model's if None.

    Example:
        >>> import torch
        >>> from attractor.optimisers import OPTIMISERS
        >>> model, x = nn.Linear(3, 1), torch.ones(2, 3)
        >>> for name in ("adam", "anytime", "mtl2l"):
        ...     entry = OPTIMISERS[name]
        ...     optimiser = attach(entry(**sizes(entry, model, x)), model)
        ...     model(x).sum().backward()
        ...     optimiser.step()
    """
    optimiser: object = make(model.parameters() if params is None else params)
    if not isinstance(optimiser, Optimizer):
        raise InputError(
            "expected a function from parameters to an optimiser, but it gave a "
            f"{type(optimiser).__name__}. Try partial(torch.optim.SGD, lr=0.01)."
        )
    if isinstance(optimiser, Learned):
        optimiser.mark_tables(model)
        if optimiser.rule.needs_context:
            optimiser.watch(model)
    return optimiser


def sizes(entry: Entry, model: nn.Module, x: Tensor | None = None) -> dict[str, int]:
    """The options of an optimiser that a network and its input decide.

    Args:
        entry: of ``OPTIMISERS``.
        model: what is to be trained.
        x: a batch of what it is shown, samples first; needed for a rule that wants to see it.

    Example:
        >>> import torch
        >>> from attractor.optimisers import OPTIMISERS
        >>> sizes(OPTIMISERS["meta_sgd"], nn.Linear(3, 1))
        {'size': 4}
        >>> sizes(OPTIMISERS["mtl2l"], nn.Linear(3, 1), torch.ones(2, 3))
        {'context_size': 3}
    """
    options = entry.options
    decided = {}
    if options.get("size") is inspect.Parameter.empty:
        decided["size"] = count(model.parameters())
    if "context_size" in options and x is not None:
        decided["context_size"] = x[0].numel()
    return decided
