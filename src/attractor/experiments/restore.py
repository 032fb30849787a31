"""A finished run, built again from its configuration with what it had learned."""

from pathlib import Path
from typing import Any

from torch import nn

from attractor.errors import InputError
from attractor.experiments.config import RunConfig
from attractor.experiments.repeat import read_run
from attractor.experiments.train import build
from attractor.runs.checkpoint import candidates
from attractor.runs.drive import Context, never
from attractor.runs.folder import CONFIG


def restored(
    folder: Path, *, data: Path | None = None, trust: bool = False
) -> tuple[RunConfig, Any]:
    """The configuration of a run and its process as the last checkpoint left it.

    Args:
        folder: of the run.
        data: the data root.
        trust: let the run name code of a module, which is then imported and called.
    """
    config = read_run(folder / CONFIG, trust=trust) if (folder / CONFIG).is_file() else None
    if config is None:
        raise InputError(
            f"expected the folder of a run at {folder}, but there is no {CONFIG} in it. "
            "Try such as runs/demo/lstm-0-1234567890."
        )
    saved = next(iter(candidates(folder)), None)
    if saved is None:
        raise InputError(
            f"expected a checkpoint of {folder}, but there is none that is whole. "
            "Finish the run with `attractor run`."
        )
    work = build(config, Context(data, folder.parent.parent, never))
    work.load_state_dict(saved["process"])
    process: Any = work.process
    return config, getattr(process, "second", None) or process


def model_of(process: Any) -> nn.Module:
    """The network of a process."""
    model = getattr(process, "model", None)
    if not isinstance(model, nn.Module):
        raise InputError(
            f"expected a run that trains a network, but a {type(process).__name__} has none. "
            "Try a supervised or a continual run."
        )
    return model
