"""Whether a model can learn a task, and whether the task has samples enough."""

from collections.abc import Sized

import torch
from torch import Tensor, nn

from attractor.checks import instance
from attractor.errors import InputError
from attractor.tasks import Judged, Task
from attractor.training.carried import seen_by
from attractor.training.labels import check_labels, labels_told


@torch.no_grad()
def check(model: nn.Module, task: Task) -> None:
    """Refuse a model that cannot learn a task, by showing it a few samples.

    Args:
        model: what is to be trained; its mode and its weights stay as they are.
        task: what it is to be trained on.

    Example:
        >>> from attractor.tasks import Digits
        >>> check(nn.Linear(64, 10), Digits(order="flat"))
    """
    instance("model", model, nn.Module, "MLP([784, 32, 10])")
    check_vocabulary(model, task)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    some, training = task.shown().to(device), model.training
    model.eval()
    try:
        with labels_told(seen_by(model), task, some, ""):
            check_labels(seen_by(model), task, some)
            task.loss(seen_by(model), some)
    except InputError:
        raise
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"expected a model for inputs of shape {_shape(some.x)} and answers of shape "
            f"{_shape(some.y)}, but it says: {str(error).rstrip('.')}. Samples come first; "
            "recurrent networks need batch_first=True."
        ) from error
    finally:
        model.train(training)
    if not any(p.requires_grad for p in model.parameters()):
        raise InputError(
            f"expected {type(model).__name__} to have weights to train, but it has none that may "
            "change. Try model.requires_grad_(True)."
        )


def samples_of(task: Task) -> int | None:
    """How many training samples a task has; ``None`` where it makes them up or reads them on.

    Example:
        >>> from attractor.tasks import CopyMemory, Digits
        >>> samples_of(Digits()), samples_of(CopyMemory(lag=5))
        (1297, None)
    """
    stored = task.task if isinstance(task, Judged) else task
    return len(stored) if isinstance(stored, Sized) else None


def check_batch_size(task: Task, batch_size: int) -> None:
    """Refuse batches of more samples than there are, in which some would be twice.

    Example:
        >>> from attractor.tasks import Digits
        >>> check_batch_size(Digits(), 100)
    """
    there = samples_of(task)
    if there is not None and batch_size > there:
        raise InputError(
            f"expected at least batch_size={batch_size} samples to train on, but got {there}. "
            f"Try batch_size={there}."
        )


def check_vocabulary(model: nn.Module, task: Task) -> None:
    """Refuse a model of another vocabulary; symbols that it lacks may not come for many batches.

    A model may have other tables too, such as one of places.
    """
    known = [one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding)]
    if task.symbolic and known and task.input_size not in known:
        raise InputError(
            f"expected a model that knows the {task.input_size} tokens of the vocabulary, but it "
            f"was made for {known[0]}. Make it with vocabulary={task.input_size}, or train it on "
            "the text that it was made for."
        )


def _shape(x: Tensor | tuple[Tensor, ...]) -> str:
    return " and ".join(str(tuple(one.shape)) for one in (x if isinstance(x, tuple) else (x,)))
