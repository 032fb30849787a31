"""Weights of learned optimisers that others published, from a file that the user has."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attractor.errors import InputError
from attractor.optimisers.rules.celo import AVERAGES, FEATURES, PLACES, Celo
from attractor.optimisers.rules.small_fc import SmallFC
from attractor.optimisers.rules.velo import TOLD, Velo

DECAYS = ("momentum_decays", "rms_decays", "adafactor_decays")
MULO: dict[str, tuple[float, ...]] = {
    "momentum_decays": (0.15216392, 0.14245212, 0.06812963),
    "rms_decays": (0.01079706,),
    "adafactor_decays": (0.18621896, -0.10864615, -0.06185547),
}
"""What goes with the weights of muLO: PyLO has these in its code, not in the file."""
WIDTHS = (1, 1, 1, 3, 1, 3, 1, 3, 1, 3, 3, 3, 3, 3)
"""How many of the 30 numbers each part of a first layer reads, as the authors of VeLO keep it."""


class Form(NamedTuple):
    """How a file keeps the weights of Celo or VeLO.

    Args:
        names: what it calls each of them, by our names.
        turned: those of which it keeps inputs where we have outputs.
        beyond: what only files of larger perceptrons have.
    """

    names: Mapping[str, str]
    turned: frozenset[str] = frozenset()
    beyond: tuple[str, ...] = ()


LAYERS = {
    "read": ("linear_2", "final_mix_layer"),
    "mix": ("linear_1", "mix_layer2"),
    "gates": ("rnn/linear", "lstm.linear"),
    "rate": ("step_size", "step_size"),
    "choose": ("rnn_to_controls", "rnn_to_controls"),
}
"""What the authors and PyLO call the layers of VeLO's recurrent network."""
OFFICIAL = Form(
    {f"weights.0.{i}": f"ff_mod_stack/~/w0__{i}" for i in range(len(WIDTHS))}
    | {f"weights.{i}": f"ff_mod_stack/~/w{i}" for i in (1, 2)}
    | {f"biases.{i}": f"ff_mod_stack/~/b{i}" for i in range(3)}
    | {f"{own}.weight": f"rnn_params/{name}/w" for own, (name, _) in LAYERS.items()}
    | {f"{own}.bias": f"rnn_params/{name}/b" for own, (name, _) in LAYERS.items()}
    | {name: f"lstm_init_state/{name}" for name in ("hidden", "cell")},
    turned=frozenset(f"{own}.weight" for own in LAYERS),
    beyond=(f"ff_mod_stack/~/w0__{len(WIDTHS)}", "ff_mod_stack/~/w3"),
)
"""That of learned_optimization, for VeLO."""
OF_CELO = OFFICIAL._replace(
    names={own: name for own, name in OFFICIAL.names.items() if not own.startswith("choose.")}
)
PYLO_RNN = Form(
    {f"{own}.{k}": f"{name}.{k}" for own, (_, name) in LAYERS.items() for k in ("weight", "bias")}
    | {"hidden": "lstm_init_state.0", "cell": "lstm_init_state.1"}
)
PYLO_MLP = Form(
    {
        "weights.0.0": "input_weights_",
        "weights.1": "hidden_weights_.0",
        "weights.2": "output_weights_",
        "biases.0": "input_bias_",
        "biases.1": "hidden_bias_.0",
        "biases.2": "output_bias_",
    },
    turned=frozenset({"weights.0.0", "weights.1", "weights.2"}),
    beyond=("hidden_weights_.1",),
)


class Part(NamedTuple):
    """An array of a file: where it is from, and whether it is to be turned."""

    path: Path
    name: str
    value: Tensor
    turned: bool

    def seen(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape of the file as ours, or ours as the file's."""
        return (*shape[:-2], *shape[-2:][::-1]) if self.turned else tuple(shape)


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
    parts = _parts("Celo", path, OF_CELO)
    count = parts["biases.0"].value.shape[:1].numel()
    if count != 1:
        raise InputError(
            f"expected the weights of Celo in {path}, which is one perceptron, but got {count} "
            "perceptrons. Try load_velo, if these are VeLO's."
        )
    state = _state("Celo", parts, (1, 4, 64), told=(len(PLACES) + AVERAGES - 1,))
    units, memory = state["biases.0"].shape[1], len(state["hidden"])
    rule = Celo(horizon=horizon, hidden_size=units, scheduler_size=memory)
    for i in range(3):
        state[f"layers.{i}.weight"] = state.pop(f"weights.{i}")[0].mT
        state[f"layers.{i}.bias"] = state.pop(f"biases.{i}")[0]
    rule.load_state_dict(state)
    return rule


def load_velo(rnn: str | Path, mlp: str | Path | None = None, *, horizon: int) -> Velo:
    """A `Velo` with the weights that its authors published, from their file or PyLO's two.

    The authors keep them in msgpack, as ``params`` below a name such as
    ``aug12_continue_on_bigger_2xbs_200kstep_bigproblem_v2_5620``. Write the arrays of the tree that
    ``flax.serialization.msgpack_restore`` makes of it as safetensors first, their names joined by
    ``/``: ``params/ff_mod_stack/~/w0__0`` and so on, with ``params/`` or without it. Its ``gen_id``
    and ``step`` are not needed.

    PyLO keeps them as safetensors, in two files: ``final_mix_layer.weight`` and so on of the
    recurrent network in that of ``VeLO_RNN``, ``input_weights_`` and so on of the perceptrons in
    that of ``VeLO_MLP``. Nothing is unpickled here.

    Args:
        rnn: the safetensors file; of the recurrent network alone, where `mlp` is given.
        mlp: PyLO's file of the perceptrons; ``None`` where one file has all.
        horizon: the updates of the training that it is for.

    Example:
        >>> rule = load_velo("velo/params.safetensors", horizon=10_000)  # doctest: +SKIP
        >>> rule = load_velo(  # doctest: +SKIP
        ...     "VeLO_RNN/model.safetensors", "VeLO_MLP/model.safetensors", horizon=10_000
        ... )
        >>> optimiser = rule(model.parameters())  # doctest: +SKIP
        >>> optimiser.step(lambda: loss)  # doctest: +SKIP
    """
    if mlp is None:
        parts = _parts("VeLO", rnn, OFFICIAL)
    else:
        parts = _parts("VeLO", rnn, PYLO_RNN) | _parts("VeLO", mlp, PYLO_MLP)
    # what is beyond TOLD is read in validation only
    state = _state("VeLO", parts, (256, 4, 512), told=(TOLD, TOLD + 1))
    state |= {name: state[name][:, :TOLD] for name in ("read.weight", "mix.weight")}
    count, units = state["biases.0"].shape
    memory = len(state["hidden"])
    rule = Velo(horizon=horizon, hidden_size=units, scheduler_size=memory, perceptrons=count)
    rule.load_state_dict(state)
    return rule


def _parts(rule: str, path: str | Path, form: Form) -> dict[str, Part]:
    """What a file of this form has, by our names."""
    path = Path(path)
    found = _of_checkpoint(_read(path))
    missing = [name for name in form.names.values() if name not in found]
    if missing:
        raise InputError(
            f"expected the weights of {rule} in {path}, with {_few(missing)} among them, but got "
            f"{_few(sorted(found))}. {_advice(found, form)}"
        )
    for name in form.beyond:
        if name in found:
            raise InputError(
                f"expected the weights of {rule} in {path}, whose perceptrons read {FEATURES} "
                f"numbers and have two hidden layers, but got {name} too, of larger ones. Try "
                "those that were published."
            )
    return {
        own: Part(path, name, found[name], own in form.turned) for own, name in form.names.items()
    }


def _state(
    rule: str, parts: Mapping[str, Part], published: tuple[int, int, int], *, told: Sequence[int]
) -> dict[str, Tensor]:
    """The parts once their shapes are known to fit one another, as our rules keep them.

    Args:
        rule: whose they are, for messages.
        parts: by our names.
        published: how many perceptrons there are, their units and those of the recurrent network,
            to say what was expected where a file's own sizes cannot be told.
        told: how many numbers the recurrent network may read.

    Shape:
        weights of perceptrons ``(perceptrons, inputs, outputs)``, of whose answers two are of use,
        and of the recurrent network ``(outputs, inputs)``.
    """
    shapes = {own: part.seen(part.value.shape) for own, part in parts.items()}
    count, units = _pair(shapes["biases.0"], published[:2])
    memory = max(_pair(shapes["hidden"], published[1:]))
    read = _pair(shapes["read.weight"], (memory, told[0]))[1]
    read = read if read in told else told[0]
    first = [own for own in parts if own.startswith("weights.0.")]
    widths = WIDTHS if len(first) > 1 else (FEATURES,)
    layers = {
        "read": (memory, read),
        "mix": (memory, read),
        "gates": (4 * memory, 2 * memory),
        "rate": (1, memory),
        "choose": (count, memory),
    }
    expected = {  # first those that sizes are told by
        "biases.0": (count, units),
        "hidden": (1, memory),
        "cell": (1, memory),
        **{own: (count, width, units) for own, width in zip(first, widths, strict=True)},
        "weights.1": (count, units, units),
        "weights.2": (count, units, 3),
        "biases.1": (count, units),
        "biases.2": (count, 3),
        **{f"{name}.weight": size for name, size in layers.items()},
        **{f"{name}.bias": size[:1] for name, size in layers.items()},
    }
    for own, shape in expected.items():
        part = parts.get(own)  # Celo has none to choose by
        if part is not None and shapes[own] != shape:
            raise InputError(
                f"expected the weights of {rule} in {part.path}, with {part.name} of shape "
                f"{part.seen(shape)}, but got {tuple(part.value.shape)}. Try the arrays "
                "as they were published: none turned, cut, or of another training."
            )
    values = {own: part.value.mT if part.turned else part.value for own, part in parts.items()}
    values["weights.0"] = torch.cat([values.pop(own) for own in first], 1)
    values |= {own: values[own][..., :2] for own in ("weights.2", "biases.2")}
    return values | {own: values[own][0] for own in ("hidden", "cell")}


def _pair(shape: tuple[int, ...], otherwise: tuple[int, int]) -> tuple[int, int]:
    """The sizes of a matrix, unless it is none."""
    return (shape[0], shape[1]) if len(shape) == 2 and min(shape) > 0 else otherwise


def _of_checkpoint(found: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """What is below ``params`` in a checkpoint of learned_optimization; other files as they are."""
    arrays = {name: one for name, one in found.items() if name not in {"gen_id", "step"}}
    if not all(name.startswith("params/") for name in arrays):
        return found
    return {name.removeprefix("params/"): one for name, one in arrays.items()}


def _advice(found: Iterable[str], form: Form) -> str:
    """What to try with a file that has other names than this form."""
    known, names = (OFFICIAL, PYLO_RNN, PYLO_MLP), set(found)
    like = max(known, key=lambda one: len(names.intersection(one.names.values())))
    if form is OF_CELO or form is like or names.isdisjoint(like.names.values()):
        return "Get what its authors published, and write it as safetensors."
    if like is OFFICIAL:
        return "These are names of the authors' one file: try it alone, without mlp."
    if form is OFFICIAL:
        return "These are names of PyLO's: try its two files, load_velo(rnn, mlp, horizon=...)."
    return "Try PyLO's VeLO_RNN as the first file and its VeLO_MLP as the second."


def _few(names: Sequence[str]) -> str:
    """The first of some names, and how many there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}" if names else "no arrays"


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
