"""Whether runs would be refused, found without doing them."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from attractor.errors import InputError, RunError
from attractor.experiments.config import RunConfig
from attractor.experiments.train import build
from attractor.runs.drive import Context
from attractor.training.process import Stopped


def refusals(configs: Iterable[RunConfig], data: Path | None = None) -> dict[str, str]:
    """By the name of its run (`id`), why each would not start; runs that would are left out.

    Each is made up to its first step, one of those that differ by their seed alone for all of
    them. What a network of features would show is not made, so what follows it is not checked.

    Args:
        configs: the runs.
        data: the data root.

    Example:
        >>> from attractor.experiments.grid import axes, sweep_runs
        >>> runs = sweep_runs("demo", axes(["model.hidden_size=8,big"]), ["seeds=[0]"], ["LSTM"])
        >>> [why] = refusals(runs).values()
        >>> why
        "expected the option 'hidden_size' of the model recurrent to be a whole number, but got \
'big'. Try another value."
    """
    found: dict[str, str] = {}
    known: dict[str, str] = {}
    for config in configs:
        alike = config.model_copy(update={"seed": 0}).id
        if alike not in known:
            known[alike] = _refusal(config, data)
        if known[alike]:
            found[config.id] = known[alike]
    return found


def _refusal(config: RunConfig, data: Path | None) -> str:
    with tempfile.TemporaryDirectory(prefix="attractor-check-") as out:
        try:
            build(config, Context(data, Path(out), lambda: True))
        except Stopped:  # features are pretrained first: as far as can be told, all is well
            return ""
        except (InputError, RunError) as error:
            return str(error)
        except Exception as error:  # a mistake of ours, or of a user's own class
            return f"unexpected {type(error).__name__}: {error}".splitlines()[0]
    return ""
