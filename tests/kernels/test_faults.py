"""What could go wrong around kernels: odd shapes and memory, threads, processes, paths, NaN."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from attractor.cells import CELLS, Recurrent, layer_norm
from attractor.cells.kernels import STATUS, native
from attractor.cells.kernels.fused import fused
from attractor.cells.kernels.table import KERNELS, NORMED
from attractor.cells.layer.ragged import Ragged
from attractor.cells.layer.unroll import unroll_rows
from contracts.cells import perturb, seeded

pytestmark = pytest.mark.skipif(STATUS.path is None, reason=f"kernels are {STATUS}")
NAMES = sorted(name for name in CELLS if CELLS[name] in KERNELS)
NORM = " with layer norm"
NAMES += [name + NORM for name in NAMES if CELLS[name] in NORMED]


def make(name: str, inputs: int, units: int, dtype: torch.dtype = torch.float32) -> Recurrent:
    plain = name.removesuffix(NORM)
    options: dict[str, Any] = {"capacity": 2} if plain in ("eurnn", "goru") else {}
    if plain == "clockwork":
        options = {"periods": (1, 2, 4)[:units]}
    kind = plain if plain == name else layer_norm(plain)
    return Recurrent(kind, inputs, units, dtype=dtype, generator=seeded(), **options)


def train(module: Recurrent, x: Tensor) -> list[Tensor]:
    torch.manual_seed(0)  # what noise is drawn from
    output, state = module(x)
    return [output, *pytree.tree_leaves(state), *_gradients(output, module)]


def _gradients(output: Tensor, module: Recurrent) -> tuple[Tensor, ...]:
    # but those of the input's norm, which are torch's own and depend on the threads
    inputs = [one for name, one in module.named_parameters() if "norm_x" not in name]
    return torch.autograd.grad(output.square().sum(), inputs)


def compare(name: str, steps: int, batch: int, inputs: int, units: int, seed: int) -> None:
    """Kernel and loop on one shape, on memory that is not aligned, and mostly not contiguous.

    Every other seed has sequences of several lengths, every third one contiguous input, half of
    the cells without a norm single precision, and every fifth one goes back as well.
    """
    # the loop of a full uRNN divides by moduli that may be tiny, which single precision cannot, and
    # a norm of what a state of zeros makes magnifies what is left of it
    single = seed // 2 % 2 == 0 and name != "full_urnn" and not name.endswith(NORM)
    dtype, within = (torch.float32, 1e-4) if single else (torch.float64, 1e-9)
    module = perturb(make(name, inputs, units, dtype), seeded(seed))
    room = torch.randn(batch, 1 + 2 * steps * inputs, generator=seeded(seed), dtype=dtype)
    x = room[:, 1:].view(batch, steps, 2 * inputs)[..., ::2].transpose(0, 1)
    ragged = None
    if seed % 2:
        drawn = torch.randint(1, steps + 1, (batch,), generator=seeded(seed))
        lengths = torch.cat([torch.tensor([steps]), drawn[1:]])
        ragged = Ragged((lengths > torch.arange(steps)[:, None]).sum(1).tolist())
        x = ragged.pack(x)
    if seed % 3 == 0:
        x = torch.cat([x.new_zeros(1), x.flatten()])[1:].view_as(x)
        assert x.data_ptr() % 16
    cell: Any = module.cells[0]
    if name == "nru":
        for parameter in cell.parameters():
            parameter.data.mul_(0.3)
    with torch.set_grad_enabled(seed % 5 == 0):
        found = answers(cell, fused, x, ragged, batch, seed)
        expected = answers(cell, unroll_rows, x, ragged, batch, seed)
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        error = (one - other).abs().max().item() / (1 + other.abs().max().item())
        assert error < within, (name, steps, batch, inputs, units, seed, index, error)


def answers(
    cell: Any, way: Any, x: Tensor, ragged: Ragged | None, batch: int, seed: int
) -> list[Tensor]:
    """Outputs, last states and, if asked for, gradients by the kernel or by the loop."""
    torch.manual_seed(seed)  # what noise is drawn from
    done = way(cell, x, cell.initial_state(batch), ragged, False)
    assert done is not None
    leaves = pytree.tree_leaves(done)
    if not torch.is_grad_enabled():
        return leaves
    loss = sum((leaf * leaf.detach().cos()).sum() for leaf in leaves if leaf.requires_grad)
    parameters = list(cell.parameters())
    grads = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return [*leaves, *grads]


def fuzz(name: str, count: int) -> None:
    g = seeded(7)

    def any_of(least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=g))

    fewest = 2 if name.removesuffix(NORM) in ("eurnn", "goru") else 1  # which have pairs to rotate
    for seed in range(count):
        compare(name, any_of(1, 9), any_of(1, 9), any_of(1, 12), any_of(fewest, 40), seed)


@pytest.mark.parametrize("name", NAMES)
def test_any_shape_is_right(name: str) -> None:
    compare(name, 1, 1, 1, 2, seed=0)
    compare(name, 1, 7, 3, 9, seed=1)
    fuzz(name, 8)


@pytest.mark.parametrize("name", NAMES)
def test_no_sequences_make_no_outputs(name: str) -> None:
    output, state = make(name, 3, 8)(torch.zeros(4, 0, 3))
    assert output.shape[:2] == (4, 0)
    assert all(leaf.shape[1] == 0 for leaf in pytree.tree_leaves(state))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_of_many_shapes_is_right(name: str) -> None:
    fuzz(name, int(os.environ.get("ATTRACTOR_FUZZ", "1000")))  # 3704 is 10^5 shapes in all


# many sequences, which threads share, and few, of which they share each product
@pytest.mark.parametrize(("batch", "units"), [(33, 50), (3, 230)])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_do_not_depend_on_the_threads(name: str, batch: int, units: int) -> None:
    module, x = make(name, 3, units), torch.randn(20, batch, 3, generator=seeded(1))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = train(module, x)
        torch.set_num_threads(3)
        together = train(module, x)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_two_threads_of_python_do_not_disturb_each_other() -> None:
    module, x = make("lstm", 3, 60), torch.randn(20, 40, 3, generator=seeded(1))
    expected = train(module, x)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: train(module, x), range(12)))
    for found in answers:
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


class _Outputs(torch.utils.data.Dataset[Tensor]):
    def __init__(self, module: Recurrent, x: Tensor) -> None:
        self.module, self.x = module, x

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Tensor:
        torch.set_num_threads(2)
        with torch.no_grad():
            output: Tensor = self.module(self.x)[0]
        torch.set_num_threads(1)  # torch's own threads do not survive a fork
        return output


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, on purpose
def test_a_forked_process_has_threads_of_its_own() -> None:
    module, x = make("lstm", 3, 60), torch.randn(30, 40, 3, generator=seeded(1))
    expected = module(x)[0]
    loader = torch.utils.data.DataLoader(
        _Outputs(module, x), num_workers=1, multiprocessing_context="fork", timeout=60
    )
    for found in loader:
        assert torch.equal(found[0], expected)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_number_goes_where_it_goes_in_the_loop(name: str, value: float) -> None:
    # as many inputs as units, or the kernel merges two matrices of an IRC-T-LSTM into one, through
    # which an infinity comes as it is where two products in a row make it a NaN
    module, x = make(name, 9, 9), torch.randn(5, 3, 9, generator=seeded(1))
    x[2, 1, 0] = value
    cell: Any = module.cells[0]
    with torch.no_grad():
        start = cell.initial_state(3)
        torch.manual_seed(0)  # what noise is drawn from
        found = fused(cell, x, start, None, False)
        torch.manual_seed(0)
        expected = unroll_rows(cell, x, start, None, False)
    assert found is not None
    torch.testing.assert_close(found.output, expected.output, equal_nan=True, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_training_step_leaves_no_circle_of_references(name: str) -> None:
    """What only the garbage collector finds would keep memory, and its search takes time."""
    module, x = make(name, 3, 4), torch.randn(5, 2, 3)
    module(x)[0].sum().backward()
    gc.collect()
    module(x)[0].sum().backward()
    assert gc.collect() == 0


def test_memory_is_kept_for_the_next_call() -> None:
    like = torch.empty(0)
    made = native.empty((1000, 1000), like)
    address = made.data_ptr()
    view = made[5:]
    del made
    other = native.empty((1000, 1000), like)
    assert other.data_ptr() != address  # the view is alive
    del view
    assert native.empty((1000, 1000), like).data_ptr() == address


def test_memory_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MemoryError, match="no memory left for 4000000000000000 bytes"):
        native.empty((10**9, 10**6), torch.empty(0))


@pytest.mark.parametrize("name", ["weight_ih", "weight_hh"])
def test_weights_of_another_size_are_not_read(name: str) -> None:
    """They are the loop's, which refuses them as torch does."""
    layer = make("lstm", 3, 64)
    cell: Any = layer.cells[0]
    assert fused(cell, torch.zeros(5, 2, 3), cell.initial_state(2), None, False) is not None
    getattr(cell, name).data = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="shape|size"):
        layer(torch.zeros(5, 2, 3))
