"""isonorm: are two models one function, and do they train alike? docs/python.md has examples."""

from ._isonorm import Tensor, __version__, tensor

__all__ = ["Tensor", "tensor"]
