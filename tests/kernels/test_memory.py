"""What a layer keeps: nothing that nobody asked for, and less where time is given for it."""

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

import attractor.cells.layer.recurrent as layer
from attractor.cells import Recurrent, recurrent_dropout, zoneout
from attractor.cells.kernels import STATUS, native
from attractor.errors import InputError
from contracts.cells import make_layer, seeded


def gradients(module: Recurrent, x: Tensor) -> list[Tensor]:
    torch.manual_seed(0)
    output, _, states = module(x, return_states=True)
    loss = output.square().sum() + sum(s.sum() for s in torch.utils._pytree.tree_leaves(states))
    return [output, *torch.autograd.grad(loss, [x, *module.parameters()])]


@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "loop"])
@pytest.mark.parametrize("name", ["lstm", "tlstm", "ntm", "zoneout"])
def test_segments_change_no_number(
    name: str, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        monkeypatch.setattr(layer, "fused", lambda *_: None)
    cell = zoneout("lstm", 0.0, 0.0) if name == "zoneout" else name
    options: dict[str, Any] = {"bidirectional": True, "num_layers": 2, "dtype": torch.float64}
    module = Recurrent(cell, 3, 6, generator=seeded(), checkpoint_every=4, **options)
    x = torch.randn(10, 2, 3, generator=seeded(), dtype=torch.float64).requires_grad_()
    found = gradients(module, x)
    module.checkpoint_every = 0
    for one, other in zip(found, gradients(module, x), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
@pytest.mark.parametrize("every", [0, 100])
def test_segments_keep_less(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []
    made = native.empty

    def counted(shape: Any, like: Tensor) -> Tensor:
        tensor = made(shape, like)
        alive.append(tensor.numel())
        return tensor

    monkeypatch.setattr("attractor.cells.kernels.calls.empty", counted)
    module = Recurrent("lstm", 1, 16, checkpoint_every=every)
    held: list[int] = []

    def save(tensor: Tensor) -> Tensor:
        held.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        output, _ = module(torch.zeros(10_000, 1, 1))
    output.sum().backward()
    record = 6 * 16  # four gates, h and c
    assert max(alive) == (100 if every else 10_000) * record
    if every:  # the tapes of segments are not among what is saved
        assert 100 * record not in held


@pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
@pytest.mark.parametrize("name", ["ntm", "dntm", "tardis"])
def test_a_kernel_keeps_only_outputs_without_gradients(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(shape: Any, like: Tensor) -> Tensor:
        made.append(torch.Size(shape))
        return native.empty(shape, like)

    monkeypatch.setattr("attractor.cells.kernels.calls.empty", counted)
    with torch.no_grad():
        Recurrent(name, 3, 8)(torch.zeros(2000, 1, 3))
    assert made == [torch.Size([2000, 8])]


def test_without_gradients_nothing_grows_with_time() -> None:
    module = make_layer("ntm")
    cell: Any = module.cells[0]
    step = cell.step
    alive: list[Any] = []

    def remembered(prepared: Any, state: Any) -> Any:
        made = step(prepared, state)
        alive.append(weakref.ref(torch.utils._pytree.tree_leaves(made[1])[-1]))
        return made

    cell.step = remembered
    with torch.no_grad():
        output, _ = module(torch.zeros(50, 2, 3))
    gc.collect()
    assert output.shape[0] == 50
    assert sum(one() is not None for one in alive) <= 1


def test_what_cannot_be_cut_says_so() -> None:
    x = torch.zeros(6, 2, 3)
    with pytest.raises(InputError, match="DecayNetCell prepares it as a whole"):
        Recurrent("decaynet", 3, 5, checkpoint_every=2)(x)
    dropped = recurrent_dropout("lstm", 0.5, per="sequence")
    with pytest.raises(InputError, match="per='step' for recurrent dropout"):
        Recurrent(dropped, 3, 5, checkpoint_every=2)(x)
    packed = torch.nn.utils.rnn.pack_sequence([x[:, 0], x[:3, 1]])
    with pytest.raises(InputError, match="got a PackedSequence. Try padding"):
        Recurrent("lstm", 3, 5, checkpoint_every=2)(packed)
    with pytest.raises(InputError, match="checkpoint_every to be a whole number"):
        Recurrent("lstm", 3, 5, checkpoint_every=-1)
