"""The table of models: the only place where a network is registered under a name."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_type_hints

from torch import Generator, nn

from attractor.checks import positive
from attractor.errors import InputError
from attractor.models.convnet import ConvNet
from attractor.models.draw import DRAW
from attractor.models.hcn import HCN
from attractor.models.language_model import LanguageModel
from attractor.models.makers import language_model, pair_classifier, recurrent, stroke_reader
from attractor.models.mlp import MLP
from attractor.models.pair_classifier import PairClassifier
from attractor.models.res_mlp import ResMLP
from attractor.models.resnet import ResNet
from attractor.models.stroke_reader import StrokeReader
from attractor.tables import lookup, make

Reads = Literal["vector", "image", "sequence", "symbols", "strokes"]
"""What a network is shown of a sample: all at once, with rows and columns, or step by step, as
vectors, as numbers of symbols, or as strokes after which it is to name several symbols."""


class Model(NamedTuple):
    """A network of the table.

    Args:
        kind: where it is documented: its class, or what makes it.
        make: makes one for samples of a shape and so many outputs.
        reads: what it is shown.
        reference: key of the paper in ``references.bib``.
    """

    kind: Callable[..., nn.Module]
    make: Callable[..., nn.Module]
    reads: Reads
    reference: str


def layered(kind: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """What makes a network from its sizes, from input to output."""

    def build(
        shape: Sequence[int], outputs: int, *, hidden: Sequence[int] = (), **options: Any
    ) -> nn.Module:
        """A network with these hidden layers.

        Args:
            shape: features of a sample.
            outputs: numbers in an answer.
            hidden: units of each hidden layer.
            options: of the network.
        """
        return kind([*shape[:1], *hidden, outputs], **options)

    return _signed(build, kind, leave={"sizes"})


def convolutional(shape: Sequence[int], outputs: int, **options: Any) -> nn.Module:
    """A `ConvNet` for images of this shape."""
    return ConvNet(tuple(shape), outputs, **options)  # type: ignore[arg-type]


def residual(shape: Sequence[int], outputs: int, *, depth: int, **options: Any) -> nn.Module:
    """A `ResNet` of this depth."""
    return ResNet(depth, outputs, **options)


def drawing(shape: Sequence[int], outputs: int, **options: Any) -> nn.Module:
    """A `DRAW` for images of this shape."""
    return DRAW(shape, **options)


def _signed(
    build: Callable[..., nn.Module], kind: Callable[..., nn.Module], leave: set[str]
) -> Callable[..., nn.Module]:
    """Give a maker the signature of what it makes, so that its options can be checked by name.

    Other options stay allowed where it passes them on, to the cells of a network.
    """
    mine = inspect.signature(build).parameters
    theirs = inspect.signature(kind).parameters
    own = [one for one in mine.values() if one.kind is not one.VAR_KEYWORD]
    passed = [one for one in theirs.values() if one.kind is one.VAR_KEYWORD]
    rest = [
        one.replace(kind=one.KEYWORD_ONLY)
        for one in theirs.values()
        if one not in passed and one.name not in {*mine, *leave, "device", "dtype"}
    ]
    build.__signature__ = inspect.Signature([*own, *rest, *passed])  # type: ignore[attr-defined]
    build.__annotations__ |= get_type_hints(kind.__init__) | build.__annotations__
    return build


MODELS: dict[str, Model] = {
    "convnet": Model(
        ConvNet,
        _signed(convolutional, ConvNet, {"classes"}),
        "image",
        "andrychowicz2016learning",
    ),
    "draw": Model(DRAW, _signed(drawing, DRAW, set()), "image", "gregor2015draw"),
    "hcn": Model(HCN, layered(HCN), "vector", "kuo2021plastic"),
    "language_model": Model(
        LanguageModel,
        _signed(language_model, LanguageModel, {"vocabulary"}),
        "symbols",
        "merity2018regularizing",
    ),
    "mlp": Model(MLP, layered(MLP), "vector", "rumelhart1986learning"),
    "pair_classifier": Model(
        PairClassifier,
        _signed(pair_classifier, PairClassifier, {"vocabulary", "output_size"}),
        "symbols",
        "bowman2015large",
    ),
    "recurrent": Model(recurrent, recurrent, "sequence", "elman1990finding"),
    "res_mlp": Model(ResMLP, layered(ResMLP), "vector", "he2016deep"),
    "resnet": Model(ResNet, _signed(residual, ResNet, {"classes"}), "image", "he2016deep"),
    "stroke_reader": Model(
        StrokeReader,
        _signed(stroke_reader, StrokeReader, {"input_size", "output_size"}),
        "strokes",
        "gulcehre2017memory",
    ),
}
"""Every network by its key; the command line, configurations and the tests read it."""


def model_name(spec: Mapping[str, Any]) -> str:
    """The name of the network of a specification; one with a cell is recurrent.

    Example:
        >>> model_name({"cell": "nru", "hidden_size": 64})
        'recurrent'
    """
    name = spec.get("name", "recurrent" if "cell" in spec else None)
    if name is None:
        raise InputError(
            f"expected the name of a model or of a cell, but got {dict(spec)}. "
            "Try model.cell=lstm, or model.name=mlp."
        )
    return str(name)


def model_entry(name: str) -> Model | Callable[..., nn.Module]:
    """The network of a name: an entry of the table, or what ``module:Class`` of the user's names.

    Example:
        >>> model_entry("hcn").reads
        'vector'
        >>> model_entry("torch.nn:Linear")
        <class 'torch.nn.modules.linear.Linear'>
    """
    if name in MODELS:
        return MODELS[name]
    return lookup("model", {key: one.make for key, one in MODELS.items()}, name)


def make_model(
    spec: Mapping[str, Any],
    shape: Sequence[int],
    outputs: int,
    *,
    each_step: bool = False,
    generator: Generator | None = None,
) -> nn.Module:
    """A network by name, for samples of a shape.

    Args:
        spec: ``name`` or ``cell``, and options; ``bound`` draws all weights evenly between plus and
            minus this number, and starts vectors, such as biases, at zero. What ``module:Class``
            names is told the arguments below that it has parameters for.
        shape: of a sample; of a sequence, that of a step.
        outputs: numbers in an answer.
        each_step: answer at each step of a sequence.
        generator: draws the initial weights.

    Example:
        >>> type(make_model({"cell": "janet", "hidden_size": 8}, [28], 10)).__name__
        'SequenceClassifier'
    """
    options = {"name": model_name(spec), **spec}
    bound = options.pop("bound", None)
    entry = model_entry(options["name"])
    answers = not isinstance(entry, Model) or entry.reads in ("sequence", "symbols")
    if each_step and not answers:
        raise InputError(
            f"expected a model that answers at each step, as the data ask for, but got "
            f"{options['name']!r}. Try model.cell=lstm."
        )
    makers = {options["name"]: entry.make if isinstance(entry, Model) else entry}
    given = {"shape": shape, "outputs": outputs, "generator": generator, "each_step": each_step}
    model: nn.Module = make("model", makers, options, **given)
    if bound is not None:
        redraw(model, positive("bound", bound), generator)
    return model


def redraw(model: nn.Module, bound: float, generator: Generator | None) -> None:
    """Draw all matrices evenly between plus and minus a bound, and start biases at zero.

    Other vectors, such as the gains of normalisers, stay as they are.
    """
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        elif "bias" in name.rpartition(".")[-1]:
            nn.init.zeros_(parameter)
