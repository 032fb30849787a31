"""Reading and writing a memory, by hand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.cells.memory import erase_and_add, overwrite, read

close = torch.testing.assert_close


def test_read_is_a_weighted_sum_for_each_head() -> None:
    memory = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    weights = torch.tensor([[[0.0, 0.0, 1.0], [0.5, 0.25, 0.25]]])
    close(read(memory, weights), torch.tensor([[[5.0, 6.0], [2.5, 3.5]]]))


def test_two_heads_erase_and_add_by_hand() -> None:
    """Cell 0: 8 (1 - .5 * 1)(1 - 1 * .25) + .5 * 2 + 1 * 10; cell 1: 4 (1 - .5 * 1) + .5 * 2."""
    memory = torch.tensor([[[8.0], [4.0]]])
    weights = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]])
    erase, add = torch.tensor([[[1.0], [0.25]]]), torch.tensor([[[2.0], [10.0]]])
    close(erase_and_add(memory, weights, erase, add), torch.tensor([[[14.0], [3.0]]]))


def test_a_sharp_full_erase_leaves_what_is_added() -> None:
    memory, add = torch.randn(2, 4, 3), torch.randn(2, 1, 3)
    weights = torch.eye(4)[2].expand(2, 1, 4)
    after = erase_and_add(memory, weights, torch.ones(2, 1, 3), add)
    close(after[:, 2], add[:, 0])
    close(after[:, [0, 1, 3]], memory[:, [0, 1, 3]])


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), heads=st.integers(1, 3))
def test_the_order_of_heads_does_not_matter(seed: int, heads: int) -> None:
    g = torch.Generator().manual_seed(seed)
    memory = torch.randn(2, 4, 3, generator=g)
    weights = torch.softmax(torch.randn(2, heads, 4, generator=g), -1)
    erase, add = torch.rand(2, heads, 3, generator=g), torch.randn(2, heads, 3, generator=g)
    close(
        erase_and_add(memory, weights, erase, add),
        erase_and_add(memory, weights.flip(1), erase.flip(1), add.flip(1)),
    )


def test_overwrite_changes_one_cell_bit_by_bit() -> None:
    memory, content = torch.randn(2, 4, 3), torch.randn(2, 3)
    after = overwrite(memory, torch.eye(4)[[1, 3]], content)
    assert torch.equal(after[0, 1], content[0])
    assert torch.equal(after[1, 3], content[1])
    assert torch.equal(after[0, [0, 2, 3]], memory[0, [0, 2, 3]])


def test_writing_leaves_the_old_memory_alone() -> None:
    memory = torch.ones(1, 4, 3)
    erase_and_add(memory, torch.eye(4)[None, :1], torch.ones(1, 1, 3), torch.zeros(1, 1, 3))
    overwrite(memory, torch.eye(4)[:1], torch.zeros(1, 3))
    assert torch.equal(memory, torch.ones(1, 4, 3))
