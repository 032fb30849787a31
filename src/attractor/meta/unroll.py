"""The meta-gradient: how the weights of a rule change what its learners lose."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attractor.meta.learners import Learners
from attractor.optimisers import Rule, State, View
from attractor.optimisers.blocks import BLOCK, Draws, advance, block_size, blocks
from attractor.optimisers.rule import Update
from attractor.tasks import Batch
from attractor.team import summed, team

Objective = Literal["next", "same"]
"""On which batch an update is judged: the next one (Algorithm 1) or that of its gradient."""


class Position(NamedTuple):
    """Where learners are: parameters, the rule's state, and the batch of the next gradient."""

    params: Tensor
    state: State
    batch: Batch


class Passed(NamedTuple):
    """One update of learners: what came before it, and how it was judged.

    Shape:
        gradient and slope, that of the judging loss, ``(learners, coordinates)``; losses
        ``(learners,)``.
    """

    gradient: Tensor
    view: View
    slope: Tensor
    losses: Tensor


class Unrolled(NamedTuple):
    """After some updates: where the learners are, and their losses.

    Shape:
        losses ``(updates, learners)``, each after its update.
    """

    end: Position
    losses: Tensor


def shown(rule: Rule, learners: Learners, batch: Batch, losses: Tensor) -> View:
    """What a rule sees of learners beside their numbers."""
    return learners.view._replace(
        context=batch.x if rule.needs_context else None,
        loss=losses.detach() if rule.needs_loss else None,
    )


def follow(
    rule: Rule,
    learners: Learners,
    start: Position,
    move: Callable[[Tensor, State, Tensor, View], Update],
    noise: Tensor,
    *,
    objective: Objective,
    settle: Callable[[Tensor, State, View], Tensor] | None = None,
) -> tuple[Position, list[Passed]]:
    """Update learners several times without a graph, and judge each update.

    Args:
        rule: what they are updated by.
        learners: what it trains.
        start: where they are.
        move: the rule's `update`, in whichever way it is to be computed.
        noise: added to the parameters after each update.
        objective: on which batch an update is judged.
        settle: where it is judged, if not at the parameters.
    """
    params, state, batch = start
    passed = []
    here, gradient = learners.gradients(params, batch)
    for disturbance in noise:
        view = shown(rule, learners, batch, here)
        told = learners.told(gradient)
        steps, state = move(told, state, params, view)
        params = learners.held(params, params + steps + disturbance)
        following = learners.draw()
        here, after = learners.gradients(params, following)
        losses, slope = here, after
        if objective == "same":
            losses, slope = learners.gradients(params, batch)
        if settle is not None:
            judging = batch if objective == "same" else following
            losses = learners.losses(settle(params, state, view), judging)
        passed.append(Passed(told, view, slope, losses))
        gradient, batch = after, following
    return Position(params, state, batch), passed


def first_order(
    rule: Rule,
    learners: Learners,
    start: Position,
    noise: Tensor,
    *,
    objective: Objective = "next",
) -> Unrolled:
    r"""Update learners several times, and add the meta-gradient to the rule's weights.

    .. math::
        \mathcal{L}(\eta) = \frac{1}{K} \sum_{k=1}^K \sum_{\tau=1}^{\Xi} L_k(\theta_{k,\tau})

    The learners' gradients count as constants (first order). Each coordinate then has a history
    of its own, joined to the others only by :math:`\lambda_\tau = \partial L / \partial
    \theta_\tau`. So the updates are done once without a graph, and done again with one for a
    block of coordinates at a time, whose part of the meta-gradient is that of
    :math:`\sum_\tau \lambda_\tau \cdot \theta_\tau`. Memory is that of the states and of one block.
    A rule that draws random numbers draws the same ones again.

    Args:
        rule: what is trained; its weights' gradients are added to.
        learners: what it trains.
        start: where they are; left as it is.
        noise: added to the parameters after each update.
        objective: on which batch an update is judged.

    Shape:
        noise ``(updates, learners, coordinates)``, or ``(updates, 1, 1)`` of zeros for none.
    """
    draws = Draws()

    def move(grads: Tensor, state: State, params: Tensor, view: View) -> Update:
        return advance(rule, grads, state, params, view, draws), state

    begin = start._replace(state=start.state.map(torch.clone))
    end, passed = follow(rule, learners, begin, move, noise, objective=objective)
    total = start.params.shape[1]
    # what was drawn for a block is drawn again for the same block
    pieces = list(blocks(rule, total, block_size(rule, start.state) if draws.any else BLOCK))
    after = torch.get_rng_state()
    rank, size = team()
    for number, some in enumerate(pieces):
        if number % size != rank:
            continue
        part, parts = start.state.at(some), start.params[:, some]
        weighted = start.params.new_zeros(())
        for update, (one, disturbance) in enumerate(zip(passed, noise, strict=True)):
            if draws.any:
                draws.rewind(update * len(pieces) + number)
            step, part = rule.update(one.gradient[:, some], part, parts, one.view.at(some))
            moved = parts + step + disturbance.expand_as(start.params)[:, some]
            parts = learners.held(parts, moved, some)
            weighted = weighted + (one.slope[:, some] * parts).sum()
        (weighted / len(start.params)).backward()  # type: ignore[no-untyped-call]
    torch.set_rng_state(after)
    _add_up(rule)
    return Unrolled(end, torch.stack([one.losses for one in passed]))


def _add_up(rule: Rule) -> None:
    """Sum the parts of the meta-gradient that the processes of a team have."""
    if team().size == 1:
        return
    weights = [p for p in rule.parameters() if p.requires_grad]
    told = torch.tensor([float(weight.grad is not None) for weight in weights])
    summed([told])
    moved = [weight for weight, count in zip(weights, told.tolist(), strict=True) if count]
    for weight in moved:
        weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
    summed(weight.grad for weight in moved if weight.grad is not None)


def second_order(
    rule: Rule,
    learners: Learners,
    start: Position,
    noise: Tensor,
    *,
    objective: Objective = "next",
    detach: bool = False,
) -> Unrolled:
    """As `first_order`, differentiating through the learners' gradients too.

    All of it is one graph, so memory grows with the updates and the coordinates.

    Args:
        detach: take the gradients as constants after all: what `first_order` computes, in the
            plain way.
    """
    params, state, batch = start
    losses = []
    total = params.new_zeros(())
    point = params.detach().requires_grad_()
    loss, gradient = learners.gradients(point, batch, create_graph=True)
    for disturbance in noise:
        constant = learners.told(gradient.detach() if detach else gradient)
        step, state = rule.update(constant, state, point, shown(rule, learners, batch, loss))
        point = learners.held(point, point + step + disturbance)
        following = learners.draw()
        loss, gradient = learners.gradients(point, following, create_graph=True)
        judged = loss if objective == "next" else learners.losses(point, batch)
        total = total + judged.mean()
        losses.append(judged.detach())
        batch = following
    total.backward()  # type: ignore[no-untyped-call]
    return Unrolled(Position(point.detach(), state.map(torch.detach), batch), torch.stack(losses))
