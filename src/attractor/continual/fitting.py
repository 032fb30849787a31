"""Whether a model can learn a stream, and a strategy can work with it."""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from attractor.cells import Cell, Recurrent
from attractor.checks import whole
from attractor.continual.growing import Growth, more_answers
from attractor.continual.readouts import readout
from attractor.continual.strategies.base import Strategy
from attractor.errors import InputError
from attractor.models import MODELS, MultiHead
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import answer
from attractor.tasks.streams import Stream


def check_limits(
    strategy: Strategy,
    model: nn.Module,
    optimiser: object = None,
    stream: Stream | None = None,
    *,
    grows: Literal["wider", "more answers"] | None = None,
) -> None:
    """Refuse what a strategy declares that it cannot do, before it starts.

    Args:
        strategy: with its ``limits``.
        model: the network, as it is before `start`.
        optimiser: a key of ``OPTIMISERS``, a table with a ``name``, or what makes one; of what has
            no key, nothing is known.
        stream: the tasks; one whose samples have several answers counts as ``"each step"``, one
            whose answers are numbers, labels or bits as ``"no classes"``.
        grows: whether the network is going to get ``"wider"``, or its head ``"more answers"``.

    Example:
        >>> from attractor.continual import HAT
        >>> from attractor.models import MLP
        >>> check_limits(HAT(), MLP([64, 32, 10]), "adam")
    """
    networks, key = kinds(model), _key(optimiser)
    if stream is not None:
        networks |= _asked(stream[0])
    for kind, why in strategy.limits.items():
        if kind in networks or kind in (key, grows):
            got = f"a {type(model).__name__}, of the kind" if kind in networks else "the optimiser"
            got = f"a {type(model).__name__} that gets" if kind == grows else got
            raise InputError(
                f"expected a network and an optimiser that {strategy!r} can work with, but got "
                f"{got} {kind!r}: {why}. Try another strategy, such as er."
            )


def _asked(task: StoredTask) -> set[str]:
    """What is unusual about the answers of a task."""
    if not task.asks_classes:
        return {"no classes"} | ({"each step"} if task.answers == "each step" else set())
    return {"each step"} if task.first("test", 1).y.ndim > 1 else set()


def kinds(model: nn.Module) -> set[str]:
    """The keys of ``MODELS`` that a network, or a part of it, is one of.

    Example:
        >>> from attractor.models import MLP
        >>> kinds(nn.Sequential(MLP([4, 3]), nn.LSTM(3, 3))) == {"mlp", "recurrent"}
        True
    """
    parts = list(model.modules())
    steps = (Recurrent, Cell, nn.RNNBase, nn.RNNCellBase)
    found = {"recurrent"} if any(isinstance(part, steps) for part in parts) else set()
    for key, entry in MODELS.items():
        kind = entry.kind
        if isinstance(kind, type) and any(isinstance(part, kind) for part in parts):
            found.add(key)
    return found


def _key(optimiser: object) -> object:
    if isinstance(optimiser, Mapping):
        return optimiser.get("name")
    return optimiser if isinstance(optimiser, str) else getattr(optimiser, "key", None)


def check(model: nn.Module, stream: Stream) -> None:
    """Refuse a model that cannot learn a stream, before anything is lost.

    Args:
        model: what a strategy's `start` gave.
        stream: the tasks.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks.streams import permuted_images
        >>> g = torch.Generator().manual_seed(0)
        >>> check(MLP([64, 32, 10]), permuted_images(dataset="digits", tasks=2, generator=g))
    """
    if getattr(type(model), "needs_task", False) and not stream.identity:
        raise InputError(
            f"expected a stream that tells the task, which {type(model).__name__} needs to know, "
            f"but {stream.name!r} does not. Try dataclasses.replace(stream, identity=True)."
        )
    some = stream[0].first("test", 2)
    if stream[0].asks_classes and some.y.is_floating_point():
        raise InputError(
            f"expected the numbers of classes as answers in the stream {stream.name!r}, but got "
            f"{some.y.dtype}. Try y.long(), or task_of(..., asks='numbers') for regression."
        )
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    with torch.inference_mode():
        answers = _answer(model, some.map(lambda t: t.to(device)), stream)
    model.train(training)
    asked = some.y.shape if stream[0].asks_classes else some.y.shape[:-1]
    if answers.shape[:-1] != asked:
        raise InputError(
            f"expected a model with answers of shape ({', '.join(map(str, asked))}, outputs) to "
            f"inputs of shape {tuple(some.x.shape)}, but they have the shape "
            f"{tuple(answers.shape)}. Samples come first; recurrent networks need "
            "batch_first=True, and a SequenceTagger answers at each step; for several labels of a "
            "sample say asks='labels'."
        )
    if answers.shape[-1] < stream.outputs:
        raise InputError(
            f"expected a model with an output for each of the {stream.outputs} classes of the "
            f"stream {stream.name!r}, but it has {answers.shape[-1]}. Widen its last layer, or "
            "relabel the classes of each task."
        )
    for module in model.modules():
        if isinstance(module, MultiHead):
            _check_heads(module, stream)


def _check_heads(model: MultiHead, stream: Stream) -> None:
    for task in stream:
        if model.hidden[task.place, list(task.classes)].any():
            raise InputError(
                f"expected a head for the classes {list(task.classes)} of the task {task.name!r}, "
                "but the MultiHead of that task has others. Make it with "
                "[task.classes for task in stream] of this stream, or the stream with own_heads."
            )


def _answer(model: nn.Module, some: Batch, stream: Stream) -> Tensor:
    try:
        return answer(model, some)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"expected a model that takes inputs of shape {tuple(some.x.shape)} from the stream "
            f"{stream.name!r}, but it says: {error}. Samples come first; recurrent networks need "
            "batch_first=True."
        ) from error


def room_for(
    stream: Stream, model: nn.Module, strategy: Strategy, *, generator: Generator
) -> Growth | None:
    """The network with more answers, if a stream has more; refused if that cannot be.

    Args:
        stream: with a task more than the network has learnt.
        model: the network, which is left as it is.
        strategy: with which it goes on.
        generator: draws the new weights.
    """
    growth = None
    if stream.outputs > (had := readout(model)[1].out_features):
        if strategy.wraps_model:
            raise InputError(
                f"expected a task with the classes that the network has, but {stream[-1].name!r} "
                f"has {stream.outputs - had} more, and {strategy!r} cannot widen its heads. Make "
                "the network with all outputs at its start."
            )
        check_limits(strategy, model, grows="more answers")
        growth = more_answers(model, stream.outputs, generator=generator)
    check(model if growth is None else growth.model, stream)
    return growth


def per_task(iterations: int | Sequence[int] | None, tasks: int) -> int | list[int] | None:
    """Updates of each task, once they are known to be one number, one for each task, or none."""
    if iterations is None or isinstance(iterations, int):
        return None if iterations is None else whole("iterations", iterations, 1)
    each = [whole("iterations", one, 1) for one in iterations]
    if len(each) != tasks:
        raise InputError(
            f"expected a number of iterations for each of the {tasks} tasks, but got {len(each)}. "
            "Try one number for all."
        )
    return each
