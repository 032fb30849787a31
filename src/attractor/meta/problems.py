"""Problems from what users have: a function that makes a network, and tensors."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.meta.distribution import Distribution
from attractor.meta.learners import Problem
from attractor.training.data import as_task

EXAMPLE = "tasks=[(make_model, x, y, torch.nn.functional.cross_entropy)]"
TENTH = 10
TensorTask = tuple[Callable[..., nn.Module], Any, Any, Callable[[Tensor, Tensor], Tensor]]
"""What makes a network, inputs, answers, and a loss of the network's answers and the right ones."""


def check_problems(problems: object) -> None:
    """Refuse what is no list of problems."""
    given = problems if isinstance(problems, list | tuple) else [problems]
    wrong = [one for one in given if not isinstance(one, Problem | Distribution)]
    if wrong or given is not problems:
        got = type((wrong or given)[0]).__name__
        where = "among them" if given is problems else "itself"
        raise InputError(
            f"expected a list of Problem or Distribution, but got {got} {where}. Try [problem], or "
            f"meta.train(rule, {EXAMPLE})."
        )


def check_tasks(tasks: object) -> None:
    """Refuse what is no list of tuples, each with all that makes a problem."""
    for one in tasks if isinstance(tasks, list | tuple) else [tasks]:
        parts = len(one) if isinstance(one, list | tuple) else 0
        if parts not in (3, 4):
            got = f"{parts} of these" if parts else f"{type(one).__name__} in its place"
            raise InputError(
                "expected tasks to be a list of tuples (make_model, x, y, loss), but got "
                f"{got}. Try {EXAMPLE}."
            )


def problem_of(
    make: Callable[..., nn.Module],
    x: Any,
    y: Any,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    *,
    batch_size: int | None = None,
    hold_out: bool = False,
) -> Problem:
    """A problem over tensors.

    Args:
        make: makes a network, from a generator if it takes one. One that takes none draws from
            torch's default generator, which is seeded for it and then put back as it was.
        x: inputs, samples first.
        y: answers.
        loss: as in `fit`: cross entropy for classes, else the mean squared error.
        batch_size: 128, or all samples if they are fewer.
        hold_out: keep every tenth sample back, for learners to be judged on.

    Example:
        >>> problem = problem_of(lambda: nn.Linear(4, 2), torch.randn(9, 4), torch.zeros(9, 2))
        >>> problem.model(torch.Generator()), problem.batch_size
        (Linear(in_features=4, out_features=2, bias=True), 9)
    """
    if not callable(make) or isinstance(make, nn.Module):
        raise InputError(
            f"expected what makes a network, but got {type(make).__name__} itself. Try "
            "lambda: nn.Linear(4, 2), so that every learner has weights of its own."
        )
    valid = None
    if hold_out:
        (x, y), valid = _parted(x, y)
    task = as_task((x, y), valid, loss)
    size = min(128, len(x)) if batch_size is None else batch_size
    return Problem(make if _takes_generator(make) else seeded(make), task, size)


def _parted(x: Any, y: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """All samples but every tenth, and every tenth."""
    if len(x) < TENTH:
        raise InputError(
            f"expected at least {TENTH} samples, of which every tenth is held out to judge "
            f"learners on, but got {len(x)}. Try estimator='pes' without validate_every, which "
            "judges on batches of training data."
        )
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    held = torch.arange(len(x)) % TENTH == TENTH - 1
    return (x[~held], y[~held]), (x[held], y[held])


def seeded(make: Callable[[], nn.Module]) -> Callable[[Generator], nn.Module]:
    """What makes a network from a generator, of what draws from torch's default one."""

    def made(generator: Generator) -> nn.Module:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device).item()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed))
            return make()

    return made


def _takes_generator(make: Callable[..., nn.Module]) -> bool:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # of C, say
        return False
    return any(p.default is p.empty and p.kind in (0, 1) for p in parameters)
