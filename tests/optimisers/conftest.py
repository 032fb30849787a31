"""Note how far each test found a rule from its NumPy reference: ``--errors`` prints it."""

from cells.conftest import _largest_error as _largest_error
