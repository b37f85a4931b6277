"""isonorm: are two models one function, and do they train alike? docs/python.md has examples."""

from ._isonorm import Tensor, __version__, tensor
from ._compare import assert_equivalent, compare
from ._files import Converted, Proof, Verified, convert, prove, verify
from ._result import Difference, Power, Probe, Result

__all__ = [
    "Converted",
    "Difference",
    "Power",
    "Probe",
    "Proof",
    "Result",
    "Tensor",
    "Verified",
    "assert_equivalent",
    "compare",
    "convert",
    "prove",
    "tensor",
    "verify",
]
