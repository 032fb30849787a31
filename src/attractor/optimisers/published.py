"""Weights of learned optimisers that others published, from a file that the user has."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attractor.errors import InputError
from attractor.optimisers.rules.celo import Celo
from attractor.optimisers.rules.small_fc import SmallFC
from attractor.optimisers.rules.velo import TOLD, Velo

Known = TypeVar("Known", Celo, Velo)

DECAYS = ("momentum_decays", "rms_decays", "adafactor_decays")
MULO: dict[str, tuple[float, ...]] = {
    "momentum_decays": (0.15216392, 0.14245212, 0.06812963),
    "rms_decays": (0.01079706,),
    "adafactor_decays": (0.18621896, -0.10864615, -0.06185547),
}
"""What goes with the weights of muLO: PyLO has these in its code, not in the file."""


def load_published(
    path: str | Path,
    *,
    scale: float = 0.01,
    exponent: float = 0.001,
    decays: Mapping[str, Sequence[float]] | None = None,
) -> SmallFC:
    """A `SmallFC` with the weights of muLO or of another small_fc_lopt, as others save them.

    Two ways of naming the tensors are known. That of PyLO: ``network.input``, ``network.linear_0``
    and so on, ``network.output``, each with a weight and a bias, become ``layers.0``, ``layers.1``
    and so on. That of learned_optimization: ``nn/~/w0`` is the transposed weight and ``nn/~/b0``
    the bias of ``layers.0``, and so on, beside ``momentum_decays``, ``rms_decays`` and
    ``adafactor_decays``. What JAX keeps in msgpack or pickles is to be written as safetensors
    first, the names of its tree joined by ``/``: nothing is unpickled here.

    Args:
        path: the safetensors file.
        scale: of steps: 0.01 for muLO, 0.001 for small_fc_lopt.
        exponent: of the second number that the perceptron says.
        decays: numbers of three names, if the file has none; those of muLO by default.

    Example:
        >>> rule = load_published("mulo/model.safetensors")  # doctest: +SKIP
        >>> optimiser = rule(model.parameters())  # doctest: +SKIP
    """
    found = _read(Path(path))
    layers = _of_pylo(found) if "network.input.weight" in found else _of_jax(found)
    given = {**MULO, **(decays or {}), **{k: found[k] for k in DECAYS if k in found}}
    sizes = [tuple(weight.shape) for weight, _ in layers]
    units = sizes[0][0] if sizes else 0
    expected = [(units, 39), *[(units, units)] * (len(sizes) - 2), (2, units)]
    if len(sizes) < 2 or sizes != expected:
        raise InputError(
            f"expected weights of a perceptron that reads 39 numbers and says 2 in {path}, but got "
            f"layers of shapes {sizes} (names: {', '.join(sorted(found)[:4])}, ...). Only muLO and "
            "small_fc_lopt have this form. Try load_celo or load_velo for Celo's and VeLO's."
        )
    rule = SmallFC(hidden_size=units, layers=len(sizes) - 1, scale=scale, exponent=exponent)
    state = {name: torch.as_tensor(given[name]).reshape(-1).float() for name in DECAYS}
    for number, (weight, bias) in enumerate(layers):
        state |= {f"layers.{number}.weight": weight, f"layers.{number}.bias": bias}
    try:
        rule.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(
            f"expected biases and decays that fit the layers in {path}, but {error}. Get it again."
        ) from error
    return rule


def load_celo(path: str | Path, *, horizon: int) -> Celo:
    """A `Celo` with the weights that its authors published.

    They keep them in msgpack. Write the tree that ``flax.serialization.msgpack_restore`` makes of
    it as safetensors first, its names joined by ``/``: ``ff_mod_stack/~/w0__0`` and so on are parts
    of the perceptron, ``rnn_params/rnn/linear/w`` and so on of the scheduler.

    Args:
        path: the safetensors file.
        horizon: the updates of the training that it is for.

    Example:
        >>> rule = load_celo("celo/theta.safetensors", horizon=10_000)  # doctest: +SKIP
        >>> optimiser = rule(model.parameters())  # doctest: +SKIP
        >>> optimiser.step(lambda: loss)  # doctest: +SKIP
    """

    def made(found: Mapping[str, Tensor]) -> Celo:
        state = _of_celo(found)
        units, memory = state["layers.1.weight"].shape[0], state["hidden"].shape[0]
        rule = Celo(horizon=horizon, hidden_size=units, scheduler_size=memory)
        rule.load_state_dict(state)
        return rule

    return _made(path, "Celo", made)


def load_velo(path: str | Path, *, horizon: int) -> Velo:
    """A `Velo` with the weights that its authors published.

    They keep them in msgpack, as ``params`` below a name such as
    ``aug12_continue_on_bigger_2xbs_200kstep_bigproblem_v2_5620``. Write the tree that
    ``flax.serialization.msgpack_restore`` makes of it as safetensors first, its names joined by
    ``/``, from ``ff_mod_stack``, ``rnn_params`` and ``lstm_init_state`` on.

    Args:
        path: the safetensors file.
        horizon: the updates of the training that it is for.

    Example:
        >>> rule = load_velo("velo/params.safetensors", horizon=10_000)  # doctest: +SKIP
        >>> optimiser = rule(model.parameters())  # doctest: +SKIP
        >>> optimiser.step(lambda: loss)  # doctest: +SKIP
    """

    def made(found: Mapping[str, Tensor]) -> Velo:
        state = _of_velo(found)
        count, units = state["biases.0"].shape
        rule = Velo(
            horizon=horizon,
            hidden_size=units,
            scheduler_size=len(state["hidden"]),
            perceptrons=count,
        )
        rule.load_state_dict(state)
        return rule

    return _made(path, "VeLO", made)


def _made(path: str | Path, name: str, make: Callable[[Mapping[str, Tensor]], Known]) -> Known:
    """The rule that a file has the weights of."""
    found = _read(Path(path))
    try:
        return make(found)
    except (KeyError, IndexError, ValueError, RuntimeError) as error:
        raise InputError(
            f"expected the weights of {name} in {path}, but got {', '.join(sorted(found)[:4])}, "
            f"... ({error}). Get what its authors published, and write it as safetensors."
        ) from error


def _of_celo(found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One perceptron, as layers, and its scheduler."""
    weights, biases = _perceptrons(found)
    if len(weights[0]) != 1:
        raise RuntimeError(f"{len(weights[0])} perceptrons")
    state = {f"layers.{i}.weight": w[0].mT.contiguous() for i, w in enumerate(weights)}
    state |= {f"layers.{i}.bias": b[0].clone() for i, b in enumerate(biases)}
    return state | _scheduler(found, {})


def _of_velo(found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Perceptrons to mix and the network that does; without what it reads in validation."""
    weights, biases = _perceptrons(found)
    state = {f"weights.{i}": weight for i, weight in enumerate(weights)}
    state |= {f"biases.{i}": bias for i, bias in enumerate(biases)}
    state |= _scheduler(found, {"choose": "rnn_to_controls"})
    read = {name: state[name][:, :TOLD].contiguous() for name in ("read.weight", "mix.weight")}
    return state | read


def _perceptrons(found: Mapping[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Weights ``(perceptrons, inputs, outputs)`` and biases, of whose answers two are of use."""
    own = {name.removeprefix("ff_mod_stack/~/"): one for name, one in found.items()}
    parts = [own[f"w0__{i}"] for i in range(sum(name.startswith("w0__") for name in own))]
    weights = [torch.cat(parts, 1), own["w1"], own["w2"][..., :2]]
    biases = [own["b0"], own["b1"], own["b2"][..., :2]]
    return [w.contiguous() for w in weights], [b.contiguous() for b in biases]


def _scheduler(found: Mapping[str, Tensor], more: Mapping[str, str]) -> dict[str, Tensor]:
    """The recurrent network, whose weights JAX keeps transposed, and where it begins."""
    names = {"read": "linear_2", "mix": "linear_1", "gates": "rnn/linear", "rate": "step_size"}
    state = {name: found[f"lstm_init_state/{name}"][0] for name in ("hidden", "cell")}
    for own, name in {**names, **more}.items():
        state[f"{own}.weight"] = found[f"rnn_params/{name}/w"].mT.contiguous()
        state[f"{own}.bias"] = found[f"rnn_params/{name}/b"]
    return state


def _of_pylo(found: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    inner = [f"network.linear_{i}" for i in range(len(found))]
    names = ["network.input", *inner, "network.output"]
    return [(found[f"{n}.weight"], found[f"{n}.bias"]) for n in names if f"{n}.weight" in found]


def _of_jax(found: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    names = [(f"nn/~/w{i}", f"nn/~/b{i}") for i in range(len(found))]
    return [(found[w].mT.contiguous(), found[b]) for w, b in names if w in found and b in found]


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"expected a safetensors file of published weights, but {path} is none that can be "
            "read. Write what is kept otherwise as safetensors first."
        ) from error
