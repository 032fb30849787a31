"""Whether a model can learn a task."""

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from attractor.errors import InputError
from attractor.tasks import IGNORE, Batch, Task
from attractor.tasks.answers import answer
from attractor.tasks.datasets import DatasetTask, LoaderTask
from attractor.training.carried import seen_by


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
    _check_vocabulary(model, task)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    some, training = task.shown().to(device), model.training
    model.eval()
    try:
        if isinstance(task, DatasetTask | LoaderTask):
            _check_labels(answer(seen_by(model), some), _labels(task, some))
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


def _check_vocabulary(model: nn.Module, task: Task) -> None:
    """Refuse a model that was made for fewer symbols, which it may not meet for many batches."""
    known = [one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding)]
    if task.symbolic and known and min(known) < task.input_size:
        raise InputError(
            f"expected a model that knows the {task.input_size} tokens of the vocabulary, but it "
            f"was made for {min(known)}. Make it with vocabulary={task.input_size}, or train it on "
            "the text that it was made for."
        )


def _labels(task: DatasetTask | LoaderTask, some: Batch) -> Tensor:
    """All labels, if they are in memory, or those of the samples that were read anyway."""
    data = task.train
    labels: Tensor = data.tensors[1] if isinstance(data, TensorDataset) else some.y
    return labels


def _check_labels(said: Tensor, labels: Tensor) -> None:
    outputs = said.shape[-1]
    beyond = labels[(labels != IGNORE) & ((labels < 0) | (labels >= outputs))]
    if len(beyond):
        raise InputError(
            f"expected labels from 0 to {outputs - 1}, one for each of the {outputs} outputs of "
            f"the model, but got {int(beyond[0])}. Widen its last layer, or renumber the classes."
        )


def _shape(x: Tensor | tuple[Tensor, ...]) -> str:
    return " and ".join(str(tuple(one.shape)) for one in (x if isinstance(x, tuple) else (x,)))
