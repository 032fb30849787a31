"""Which seeds the command line means."""

import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.cli.run import parse_seeds
from attractor.errors import InputError


@pytest.mark.parametrize(
    ("text", "seeds"), [("", []), ("3", [3]), ("0-2", [0, 1, 2]), ("5,0-1,1", [0, 1, 5])]
)
def test_seeds_and_ranges(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["2-0", "a", "-1", "0-99999", "1.5", "0--2"])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"expected seeds such as .* but got .* Try --seeds 0-9"):
        parse_seeds(text)


@pytest.mark.parametrize("how", [["--seeds", "0-1,4"], ["--seed", "4", "--seed", "0-1"]])
def test_both_spellings_choose_the_runs(how: list[str]) -> None:
    shown = CliRunner().invoke(app, ["run", "demo", "--only", "LSTM", "--dry-run", *how])
    assert [line.split("-")[1] for line in shown.stdout.split()] == ["0", "1", "4"]


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_seeds_that_name_none_are_refused(command: str) -> None:
    with pytest.raises(InputError, match=r"expected seeds such as .* but got ''"):
        CliRunner().invoke(
            app,
            [command, "demo", "--seeds", "", "--dry-run"],
            standalone_mode=False,
            catch_exceptions=False,
        )
