r"""How many parameters the equations give, against how many were published.

n is the number of inputs (N in the paper) and m the number of units (M). Each function counts the
symbols of one set of equations, nothing else: no embedding, no output layer, and no forget bias
that only the released code has. ``biases`` is the number of bias vectors per gate: one in every
equation, two in ``torch.nn``.

What the equations give, and what they do not. "Table II" is that of Kuo et al. (2020), the same
as Table 4.3 of the thesis.

Given by the equations:
    * IRC-GRU, 33.4 %, 5.1M -> 3.4M: two layers, (n, m) = (650, 650).
      GRU  3 (650*650 + 650*650 + 650) = 2,536,950 a layer, 5,073,900 in all.
      IRC  3 * 650*650 + 650*650 + 650 = 1,690,650 a layer, 3,381,300 in all.   33.36 %
      The bias matters here: without it the GRU has 2,535,000 and the reduction is 33.31 %.
    * IRC-T-LSTM, 50.0 %, 5.1M -> 2.5M: two layers, (650, 650). (The text of section V says three
      layers, the table two. The ratio is the same; the totals are those of two.)
      T-LSTM  3 (2 * 650*650 + 650)    = 2,536,950 a layer, 5,073,900 in all.
      IRC     3 * 650*650 + 650 + 650  = 1,268,800 a layer, 2,537,600 in all.   49.99 %
    * IRC-FastGRNN, 25.0 %, 1.7M -> 1.3M (one layer) and 3.4M -> 2.5M (two), (650, 650).
      FastGRNN  2 (2 * 650*650 + 650) + 2       = 1,691,302 a layer.
      IRC       2 * 650*650 + 650*650 + 650 + 1 = 1,268,151 a layer.            25.02 %
      with one beta per unit (+649)               1,268,800                     24.98 %
      The baseline must have separate matrices for gate and candidate. The original, shared
      FastGRNN has 846,302, and IRC would add to it.
    * IRC-SRU, 0.06 %: three layers, (1150, 1150).
      SRU  3 * 1150*1150 + 4 * 1150 = 3,972,100 a layer, 11,916,300 in all.
      IRC  3 * 1150*1150 + 2 * 1150 = 3,969,800 a layer, 11,909,400 in all.     0.058 %
    * LSTM, 3.28 thousand, and IHC-LSTM, 2.82 thousand, 14.0 %: one layer, (20, 20).
      LSTM  4 (20*20 + 20*20 + 20)                              = 3,280.
      IHC   4 * 20*20 + U_V 400 + Gamma 400 + W_G 400 + b_G 20  = 2,820.        14.02 %
    * LSTM, 24.9M, and IHC-LSTM, 15.1M, 39.2 %: three layers of sizes (400, 1150), (1150, 1150),
      (400, 1150).
      LSTM  7,134,600 + 10,584,600 + 7,134,600 = 24,853,800.
      IHC   2,920,400 +  9,258,650 + 2,920,400 = 15,099,450, with W_G and b_G.  39.25 %
      These sizes do not stack: a layer of 1150 units cannot feed one of 400 inputs. In AWD-LSTM
      the third layer has 1150 inputs and 400 units; counting it as (400, 1150) swaps the two.
      All three numbers match, so this is most likely what was counted, with W_G and b_G in it.
    * The LSTM decoder of DRAW, 2.88M: (100, 800), 4 * 800 * (100 + 800) = 2,880,000, and 2,883,200
      with one bias.

Not given by the equations:
    * SRU and IRC-SRU, 12.0M each: 11.9M (11,916,300 and 11,909,400).
    * LSTM 24.9M, IHC-LSTM 15.1M and 39.2 % for the network that was trained. AWD-LSTM's three
      layers are 400 -> 1150 -> 1150 -> 400, and for them the equations give 20,200,800 and
      16,262,700, a reduction of 19.5 %. With a last layer of 1150, 28,303,800 and 21,437,700:
      24.3 %. Leaving out W_G and b_G, as the released code does, 13,455,000 against
      20,200,800: 33.4 %.
    * IHC-LSTM decoder of DRAW, 0.42M, 85.4 %: (100, 800). The equations give
      4 * 800*100 + U_V 80,000 + Gamma 80,000 + W_G 10,000 + b_G 100 = 490,100: 0.49M, a reduction
      of 83.0 %. A Gamma of 100 x 100, acting on U_V h instead of on h, would give 420,100 and
      85.4 %, and also the 2,820 above, since there n = m. But nothing in the text says so, and the
      15.1M above counts Gamma at n * m. The IRC-LSTM has 400,100 (86.1 %).
    * DecayNet (48 units) against LSTM (64), 37.44 % fewer (DecayNet paper, appendix C, 28 inputs).
      The equations, which have no forget bias, give 14,736 against 23,808: 38.1 %. Two biases per
      gate in both, the forget gate's included, and a 10-way output layer without bias give 15,456
      against 24,704: 37.44 %. That may be a count of what was run; it is not one of the equations.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple


def lstm(n: int, m: int, *, biases: int = 1) -> int:
    """(18)-(21): W, U and b for F, I, O, A."""
    return 4 * (m * n + m * m + biases * m)


def gru(n: int, m: int, *, biases: int = 1) -> int:
    """(1)-(3): W, U and b for I, R, A."""
    return 3 * (m * n + m * m + biases * m)


def sru(n: int, m: int) -> int:
    """(27)-(30): W for F, P, A; omega and b for F, P; a fourth matrix when n != m."""
    return 3 * m * n + 4 * m + (m * n if n != m else 0)


def tlstm(n: int, m: int) -> int:
    """(36)-(39): W and U, both on inputs, and b for F, O, A."""
    return 3 * (2 * m * n + m)


def fastgrnn(n: int, m: int, *, shared: bool = False) -> int:
    """(45)-(47): W and U for F, A, or one of each when shared; two b; beta and kappa."""
    return (1 if shared else 2) * (m * n + m * m) + 2 * m + 2


def decaynet(n: int, m: int) -> int:
    """An LSTM without the forget bias."""
    return lstm(n, m) - m


def irc_gru(n: int, m: int) -> int:
    """(14)-(17): W for I, R, A; U_V; alpha."""
    return 3 * m * n + n * m + n


def irc_lstm(n: int, m: int) -> int:
    """(22)-(26): W for F, I, O, A; U_V; alpha."""
    return 4 * m * n + n * m + n


def irc_sru(n: int, m: int) -> int:
    """(31)-(35): W for F, P, A; alpha; omega_V. Needs n = m."""
    return 3 * m * n + 2 * _same(n, m)


def irc_tlstm(n: int, m: int) -> int:
    """(40)-(44): W for F, O, A; alpha; omega_V. Needs n = m."""
    return 3 * m * n + 2 * _same(n, m)


def irc_fastgrnn(n: int, m: int, *, beta_per_unit: bool = False) -> int:
    """(48)-(51): W for F, A; U_V; alpha; beta."""
    return 2 * m * n + n * m + n + (m if beta_per_unit else 1)


def ihc_lstm(n: int, m: int) -> int:
    """(52)-(53) and (23)-(26): W for F, I, O, A; U_V; Gamma; W_G; b_G."""
    return 4 * m * n + 2 * n * m + n * n + n


def ihc_gru(n: int, m: int) -> int:
    """(52)-(53), (16), (14), (17): W for I, R, A; U_V; Gamma; W_G; b_G."""
    return 3 * m * n + 2 * n * m + n * n + n


def lstm_layer_norm(n: int, m: int) -> int:
    """An LSTM, a gain and a shift on each of the two stacked sums (4m) and on the cell (m)."""
    return lstm(n, m) + 2 * (4 * m + 4 * m + m)


def lstm_batch_norm(n: int, m: int) -> int:
    """An LSTM, gains on the two stacked sums, a gain and a shift on the cell."""
    return lstm(n, m) + 4 * m + 4 * m + 2 * m


def _same(n: int, m: int) -> int:
    if n != m:
        raise ValueError(f"This cell needs as many units as inputs, but n={n} and m={m}.")
    return n


Layers = tuple[tuple[int, int], ...]
"""n and m of each layer."""


def network(count: Callable[[int, int], int], layers: Layers) -> int:
    """Layers of one cell."""
    return sum(count(n, m) for n, m in layers)


def reduction(baseline: int, simplified: int) -> float:
    """Percentage of the baseline's parameters that are gone."""
    return 100 * (1 - simplified / baseline)


class Published(NamedTuple):
    """One published comparison: of which cells and sizes, and whether the equations give it.

    ``totals`` are as printed, in parameters; ``None`` where the paper prints none.
    """

    name: str
    totals: tuple[int, int] | None
    percent: float
    decimals: int
    cells: tuple[str, str]
    layers: tuple[Layers, Layers]
    given: bool

    def parameters(self, count: Callable[[str, int, int], int]) -> tuple[int, int]:
        """Of the baseline and of what takes its place."""
        first, second = (
            network(partial(count, cell), layers)
            for cell, layers in zip(self.cells, self.layers, strict=True)
        )
        return first, second


def by_equations(cell: str, n: int, m: int) -> int:
    """What the function of that name counts."""
    counted: int = globals()[cell](n, m)
    return counted


ONE, TWO = ((650, 650),), ((650, 650),) * 2
THREE = ((1150, 1150),) * 3
SMALL, DRAW = ((20, 20),), ((100, 800),)
STACKED = ((400, 1150), (1150, 1150), (1150, 400))
SWAPPED = ((400, 1150), (1150, 1150), (400, 1150))

PUBLISHED = (
    Published(
        "IRC-GRU, 2 layers (650, 650)",
        (5_100_000, 3_400_000),
        33.4,
        1,
        ("gru", "irc_gru"),
        (TWO, TWO),
        True,
    ),
    Published(
        "IRC-T-LSTM, 2 layers (650, 650)",
        (5_100_000, 2_500_000),
        50.0,
        1,
        ("tlstm", "irc_tlstm"),
        (TWO, TWO),
        True,
    ),
    Published(
        "IRC-FastGRNN, 1 layer (650, 650)",
        (1_700_000, 1_300_000),
        25.0,
        1,
        ("fastgrnn", "irc_fastgrnn"),
        (ONE, ONE),
        True,
    ),
    Published(
        "IRC-FastGRNN, 2 layers (650, 650)",
        (3_400_000, 2_500_000),
        25.0,
        1,
        ("fastgrnn", "irc_fastgrnn"),
        (TWO, TWO),
        True,
    ),
    Published(
        "IRC-SRU, 3 layers (1150, 1150): the percentage",
        None,
        0.06,
        2,
        ("sru", "irc_sru"),
        (THREE, THREE),
        True,
    ),
    Published(
        "IRC-SRU, 3 layers (1150, 1150): the totals",
        (12_000_000, 12_000_000),
        0.06,
        2,
        ("sru", "irc_sru"),
        (THREE, THREE),
        False,
    ),
    Published(
        "IHC-LSTM, learning to learn (20, 20)",
        (3_280, 2_820),
        14.0,
        1,
        ("lstm", "ihc_lstm"),
        (SMALL, SMALL),
        True,
    ),
    Published(
        "IHC-LSTM, 3 layers (400, 1150), the third with its sizes swapped",
        (24_900_000, 15_100_000),
        39.2,
        1,
        ("lstm", "ihc_lstm"),
        (SWAPPED, SWAPPED),
        True,
    ),
    Published(
        "IHC-LSTM, 3 layers 400 -> 1150 -> 1150 -> 400",
        (24_900_000, 15_100_000),
        39.2,
        1,
        ("lstm", "ihc_lstm"),
        (STACKED, STACKED),
        False,
    ),
    Published(
        "IHC-LSTM, DRAW decoder (100, 800)",
        (2_880_000, 420_000),
        85.4,
        1,
        ("lstm", "ihc_lstm"),
        (DRAW, DRAW),
        False,
    ),
    Published(
        "DecayNet (28, 48) against LSTM (28, 64)",
        None,
        37.44,
        2,
        ("lstm", "decaynet"),
        (((28, 64),), ((28, 48),)),
        False,
    ),
)
