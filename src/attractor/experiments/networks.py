"""Networks by name, for experiments whose learners are not recurrent cells alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Generator, nn

from attractor.errors import InputError, unknown
from attractor.experiments.config import NetworkConfig
from attractor.models import HCN, MLP, ConvNet, ResMLP, ResNet, SequenceClassifier, SequenceTagger


def layered(kind: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """A network made from its sizes, from input to output."""
    return lambda inputs, outputs, hidden, **options: kind([inputs, *hidden, outputs], **options)


def recurrent(
    kind: Callable[..., nn.Module],
    inputs: int,
    outputs: int,
    hidden: list[int],
    *,
    cell: str,
    **options: Any,
) -> nn.Module:
    """A recurrent network of one width."""
    if not hidden or len(set(hidden)) > 1:
        raise InputError(
            f"expected network.hidden to be the width of each layer, all the same, but got "
            f"{hidden}. Try [100]."
        )
    layers: dict[str, Any] = {"num_layers": len(hidden), "batch_first": True}
    return kind(cell, inputs, hidden[0], outputs, **layers, **options)


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "convnet": lambda inputs, outputs, hidden, **options: ConvNet(classes=outputs, **options),
    "hcn": layered(HCN),
    "mlp": layered(MLP),
    "recurrent": partial(recurrent, SequenceClassifier),
    "res_mlp": layered(ResMLP),
    "resnet": lambda inputs, outputs, hidden, *, depth, **options: ResNet(
        depth, outputs, **options
    ),
}

TAGGERS: dict[str, Callable[..., nn.Module]] = {"recurrent": partial(recurrent, SequenceTagger)}
"""Those that can answer at each step."""


def build_network(
    config: NetworkConfig,
    inputs: int,
    outputs: int,
    *,
    each_step: bool = False,
    generator: Generator,
) -> nn.Module:
    """The network of a configuration, for inputs and outputs of these sizes."""
    what, known = "network", NETWORKS
    if each_step:
        what, known = "network that answers at each step, as the data ask for", TAGGERS
    if config.name not in known:
        raise unknown(what, config.name, known)
    try:
        return known[config.name](
            inputs, outputs, config.hidden, generator=generator, **config.options
        )
    except TypeError as error:
        raise InputError(
            f"expected options that the network {config.name} takes, but got {config.options}: "
            f"{error}. See docs/models.md."
        ) from error
