"""The weights of our rules under the names that the references use."""

from typing import Any

from attractor.cells.gated import joined
from attractor.optimisers import Pacer
from cells.against import Array, array, blocks

Weights = dict[str, Any]


def lstm_layer(cell: Any) -> dict[str, Array]:
    weights = blocks("W_x", "ifco", cell.weight_ih) | blocks("W_h", "ifco", cell.weight_hh)
    return weights | blocks("b_", "ifco", cell.bias)


def decaynet_layer(cell: Any) -> dict[str, Array]:
    weights = blocks("W_", "FIOA", cell.weight_ih) | blocks("U_", "FIOA", cell.weight_hh)
    return weights | blocks("b_", "IOA", cell.bias)


def ihc_layer(cell: Any) -> dict[str, Array]:
    u, gamma = cell.connection.weight.detach().chunk(2)
    return blocks("W_", "FIO", cell.weight_gates) | {
        "W_A": array(cell.weight_candidate),
        "W_G": array(cell.connection.weight_gate),
        "b_G": array(cell.connection.bias_gate),
        "U_V": array(u),
        "Gamma": array(gamma),
    }


def coordinatewise(rule: Any, layer: Any) -> Weights:
    """Layers of one kind and the linear layer after them."""
    return {
        "p": rule.p,
        "scale": getattr(rule, "scale", None),
        "layers": [layer(cell) for cell in rule.stack.cells],
        "w": array(rule.head.weight[0]),
        "b": rule.head.bias.item(),
    }


def rates(rule: Any) -> Weights:
    """Of DMSGD."""
    return {
        "p": rule.p,
        "gamma": rule.gamma,
        "layers": [lstm_layer(cell) for cell in rule.stack.cells],
        "U_beta": array(rule.head.weight[0]),
        "beta_sta": array(rule.static),
    }


def whole(rule: Any) -> Weights:
    """Of the global form, whose DecayNet has no forget bias; gates in the order f, i, o, a."""
    norm = rule.stack.cells[0]
    cell, units = norm.cell, norm.hidden_size
    order = [0, 1, 2, 3] if rule.options["cell"] == "decaynet" else [1, 0, 3, 2]

    def gates(tensor: Any) -> Array:
        return array(tensor.reshape(4, units, *tensor.shape[1:])[order])

    return {
        "p": rule.p,
        "down": array(rule.down.weight),
        "up": array(rule.up.weight),
        "W": gates(cell.weight_ih),
        "U": gates(cell.weight_hh),
        "b": gates(joined(cell.biases())),
        "gain_W": gates(norm.norm_x.weight),
        "shift_W": gates(norm.norm_x.bias),
        "gain_U": gates(norm.norm_h.weight),
        "shift_U": gates(norm.norm_h.bias),
    }


def mtl2l(rule: Any) -> Weights:
    def hypernetwork(net: Any) -> Weights:
        return {
            "W1": array(net[0].weight),
            "b1": array(net[0].bias),
            "W2": array(net[2].weight),
            "b2": array(net[2].bias),
        }

    layers = []
    for number in range(rule.layers):
        (Q, P), (S, J) = (array(pair) for pair in rule.fixed[number])
        first, second = rule.hyper[2 * number : 2 * number + 2]
        layers.append(
            {"Q": Q, "P": P, "S": S, "J": J, "b": array(rule.bias[number].reshape(4, -1))}
            | {"N1": hypernetwork(first), "N2": hypernetwork(second)}
        )
    return {
        "p": rule.p,
        "scale": rule.scale,
        "lift": array(rule.lift.weight),
        "layers": layers,
        "w": array(rule.head.weight[0]),
        "b": rule.head.bias.item(),
    }


def m2sgd_global(rule: Any) -> Weights:
    return {
        "p": rule.p,
        "down": array(rule.down.weight),
        "b_down": array(rule.down.bias),
        "mix": array(rule.mix.weight[0]),
        "b_mix": rule.mix.bias.item(),
        "layer": lstm_layer(rule.stack.cells[0]),
        "up": array(rule.up.weight),
        "b_up": array(rule.up.bias),
        "beta_sta": array(rule.static),
    }


def rnnprop(rule: Any) -> Weights:
    return {
        "alpha": rule.scale,
        "beta": (rule.beta1, rule.beta2),
        "A": array(rule.lift.weight),
        "a": array(rule.lift.bias),
        "layers": [lstm_layer(cell) for cell in rule.stack.cells],
        "w": array(rule.head.weight[0]),
        "b": rule.head.bias.item(),
    }


def hierarchical(rule: Any) -> Weights:
    def layer(linear: Any) -> tuple[Array, Array]:
        return array(linear.weight), array(linear.bias)

    def gru(cell: Any) -> dict[str, Array]:
        return (
            blocks("W_x", "rzh", cell.weight_ih)
            | blocks("W_h", "rzh", cell.weight_hh)
            | blocks("b_", "rzh", cell.bias)
        )

    return {
        "cells": [gru(cell) for cell in rule.cells],
        "starts": [array(one) for one in rule.starts],
        "A": layer(rule.from_tensor),
        "B": layer(rule.from_network),
        "C": layer(rule.to_tensor),
        "u": layer(rule.change),
        "beta": layer(rule.memory),
        "lambda": layer(rule.scale),
        "w": array(rule.direction.weight[0]),
        "q": array(rule.shortcut),
        "gamma": rule.logit_gamma.sigmoid().item(),
        "c": rule.offset.item(),
        "rate": rule.rate,
    }


def anytime(rule: Any) -> Weights:
    logs = ("gamma", "tau", "p", "delta", "kappa")
    return {name: getattr(rule, f"log_{name}").exp().item() for name in logs} | {
        "memory": array(rule.logit_memory.sigmoid()),
        "w": array(rule.mixture),
        "a": rule.strength.item(),
        "b": rule.agreement.item(),
        "e": rule.size_power.item(),
        "beta": rule.logit_beta.sigmoid().item(),
    }


def pacer(rule: Any) -> Weights:
    def both(first: Any, second: Any) -> tuple[Array, ...]:
        return tuple(array(part) for one in (first, second) for part in (one.weight, one.bias))

    none = Pacer(hidden_size=1).double()  # whose networks say nothing
    of = rule if rule.units else none
    return anytime(rule) | {
        "correct": both(of.lift, of.correct),
        "steer": both(of.read, of.steer),
        "eta": array(rule.log_gain.exp()),
        "lambda": rule.logit_trend.sigmoid().item(),
        "r": rule.log_limit.exp().item(),
        "omega": rule.log_wane.exp().item(),
        "chi": rule.log_return.exp().item(),
    }


def small_fc(rule: Any) -> Weights:
    decays = ("momentum", "rms", "adafactor")
    return {name: array(getattr(rule, f"{name}_decays")) for name in decays} | {
        "layers": [(array(one.weight), array(one.bias)) for one in rule.layers],
        "scale": rule.scale,
        "exponent": rule.exponent,
    }


def celo(rule: Any) -> Weights:
    return scheduled(rule) | {"layers": _pairs(*rule.layers)}


def velo(rule: Any) -> Weights:
    bank = zip(rule.weights, rule.biases, strict=True)
    found = scheduled(rule) | {"bank": [(array(weight), array(bias)) for weight, bias in bank]}
    return found | {"scheduler": [*found["scheduler"], *_pairs(rule.choose)]}


def scheduled(rule: Any) -> Weights:
    return {
        "horizon": rule.horizon,
        "scheduler": _pairs(rule.read, rule.mix, rule.gates, rule.rate),
        "begin": (array(rule.hidden), array(rule.cell)),
    }


def _pairs(*layers: Any) -> list[tuple[Array, Array]]:
    return [(array(one.weight), array(one.bias)) for one in layers]
