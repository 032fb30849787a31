"""Every cell of the table is held against an independent implementation in NumPy.

Nothing else in the contracts would notice a wrong equation.
"""

from pathlib import Path

import pytest

from attractor.cells import CELLS
from contracts import references
from contracts.references import fault


@pytest.mark.parametrize("name", sorted(CELLS))
def test_every_cell_has_a_reference(name: str) -> None:
    assert fault(name, "run", CELLS[name].__name__, "cells") is None


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TESTS", tmp_path)
    (tmp_path / "reference").mkdir()
    (tmp_path / "cells").mkdir()
    reference, test = tmp_path / "reference" / "mine.py", tmp_path / "cells" / "test_mine.py"

    def found() -> str | None:
        references.parsed.cache_clear()
        return fault("mine", "run", "MineCell", "cells")

    assert found() == "tests/reference/mine.py is missing: a second MineCell in NumPy"
    reference.write_text("import numpy as np\n")
    assert found() == "tests/reference/mine.py has no function run"
    (tmp_path / "reference" / "other.py").write_text("from attractor.cells import LSTMCell\n")
    reference.write_text("from reference.other import x\ndef run(weights, x): ...\n")
    assert found() is not None
    assert "is not independent: it imports attractor.cells.LSTMCell" in str(found())
    reference.write_text("import numpy as np\ndef run(weights, x): ...\n")
    assert found() == "no test in tests/cells holds MineCell against reference.mine"
    test.write_text("from reference import mine\nfrom attractor.cells import MineCell\n")
    assert found() == "no test in tests/cells holds MineCell against reference.mine"
    test.write_text(test.read_text() + "check(MineCell(3, 5), mine.run)\n")
    assert found() is None
    references.parsed.cache_clear()
