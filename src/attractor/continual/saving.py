"""States as tensors and plain values, which a file can hold without pickling."""

from attractor.state import pack as split
from attractor.state import unpack as join

__all__ = ["join", "split"]
