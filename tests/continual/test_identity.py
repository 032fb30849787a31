"""Who a strategy is in a checkpoint: its key and its settings, not its repr."""

import json
from typing import Any

import pytest

from attractor import InputError
from attractor.continual import GEM, HAT, Connection, Learner, Stable, Strategy, combine
from attractor.continual.identity import identity
from attractor.state import pack, unpack
from continual.helpers import digits, mlp


class Mine(Strategy):
    """A strategy of one's own, with a setting whose repr tells where it lies in memory."""

    def __init__(self, schedule: Any = abs, sizes: tuple[int, ...] = (1, 2)) -> None:
        self.schedule, self.sizes = schedule, sizes

    def __repr__(self) -> str:
        return f"Mine at {id(self)}"


def test_a_strategy_is_known_by_its_key_and_settings() -> None:
    settings = {"size": 20, "margin": 0.5, "memory": "hard", "every": 1}
    assert identity(GEM(20)) == {"name": "gem", **settings}
    both = identity(combine(GEM(20), Stable(0.5)))
    assert [one["name"] for one in both] == ["gem", "stable"]
    mine = {"name": f"{__name__}:Mine", "schedule": "builtins:abs", "sizes": [1, 2]}
    assert identity(Mine()) == mine
    assert json.loads(json.dumps(identity(Mine()))) == mine
    one, other = (Learner(mlp(), digits(2), Mine(), iterations=3) for _ in range(2))
    one.advance()
    other.load_state_dict(unpack(*pack(one.state_dict())))
    assert one.advance() == other.advance()
    with pytest.raises(
        InputError, match=r"schedule='builtins:abs', sizes=\[1, 2\]\), but it is of"
    ):
        other.load_state_dict(
            Learner(mlp(), digits(2), Mine(sizes=(3,)), iterations=3).state_dict()
        )


def test_wires_of_a_model_take_part_in_who_a_strategy_is() -> None:
    one = identity(HAT(wires=[Connection("0", None, (0,)), Connection("2", 0, ())]))
    assert one["wires"] == [["0", None, [0]], ["2", 0, []]]
    assert one != identity(HAT())
