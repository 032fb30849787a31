"""Note how far each test found a cell from its NumPy reference."""

from collections.abc import Callable, Iterator

import pytest

from cells.against import errors


@pytest.fixture(autouse=True)
def _largest_error(record_property: Callable[[str, object], None]) -> Iterator[None]:
    errors.clear()
    yield
    if errors:
        record_property("largest_error", max(errors))
