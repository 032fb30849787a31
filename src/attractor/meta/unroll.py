"""The meta-gradient: how the weights of a rule change what its learners lose."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attractor.meta.learners import Learners
from attractor.optimisers import Rule, State
from attractor.optimisers.blocks import advance, blocks
from attractor.tasks import Batch

Objective = Literal["next", "same"]
"""On which batch an update is judged: the next one (Algorithm 1) or that of its gradient."""


class Moment(NamedTuple):
    """Where learners are: parameters, the rule's state, and the batch of the next gradient."""

    params: Tensor
    state: State
    batch: Batch


class Unrolled(NamedTuple):
    """After some updates: where the learners are, and their losses.

    Shape:
        losses ``(updates, learners)``, each after its update.
    """

    moment: Moment
    losses: Tensor


def first_order(
    rule: Rule,
    learners: Learners,
    start: Moment,
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

    Args:
        rule: what is trained; its weights' gradients are added to.
        learners: what it trains.
        start: where they are; left as it is.
        noise: added to the parameters after each update.
        objective: on which batch an update is judged.

    Shape:
        noise ``(updates, learners, coordinates)``, or ``(updates, 1, 1)`` of zeros for none.
    """
    params, batch = start.params, start.batch
    state = start.state.map(torch.clone)
    gradients, contexts, slopes, losses = [], [], [], []
    _, gradient = learners.gradients(params, batch)
    for disturbance in noise:
        context = batch.x if rule.needs_context else None
        gradients.append(gradient)
        contexts.append(context)
        step = advance(rule, gradient, state, params, context=context)
        params = learners.held(params, params + step + disturbance)
        following = learners.draw()
        loss, gradient = learners.gradients(params, following)
        if objective == "same":
            loss, slope = learners.gradients(params, batch)
        else:
            slope = gradient
        slopes.append(slope)
        losses.append(loss)
        batch = following
    for some in blocks(rule, params.shape[1]):
        part, parts = start.state.at(some), start.params[:, some]
        total = params.new_zeros(())
        for gradient, context, slope, disturbance in zip(
            gradients, contexts, slopes, noise, strict=True
        ):
            step, part = rule.update(gradient[:, some], part, parts, context=context, where=some)
            moved = parts + step + disturbance.expand_as(params)[:, some]
            parts = learners.held(parts, moved, some)
            total = total + (slope[:, some] * parts).sum()
        (total / len(params)).backward()  # type: ignore[no-untyped-call]
    return Unrolled(Moment(params, state, batch), torch.stack(losses))


def second_order(
    rule: Rule,
    learners: Learners,
    start: Moment,
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
        step, state = rule.update(
            gradient.detach() if detach else gradient,
            state,
            point,
            context=batch.x if rule.needs_context else None,
        )
        point = learners.held(point, point + step + disturbance)
        following = learners.draw()
        loss, gradient = learners.gradients(point, following, create_graph=True)
        judged = loss if objective == "next" else learners.losses(point, batch)
        total = total + judged.mean()
        losses.append(judged.detach())
        batch = following
    total.backward()  # type: ignore[no-untyped-call]
    return Unrolled(Moment(point.detach(), state.map(torch.detach), batch), torch.stack(losses))
