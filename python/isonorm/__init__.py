"""isonorm: are two models one function, and do they train alike? docs/python.md has examples."""

from ._isonorm import Tensor, __version__, tensor
from ._compare import assert_equivalent, compare
from ._result import Difference, Power, Probe, Result

__all__ = ["Difference", "Power", "Probe", "Result", "Tensor", "assert_equivalent", "compare", "tensor"]
