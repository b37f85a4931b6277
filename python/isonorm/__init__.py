"""isonorm: are two models one function, and do they train alike? docs/python.md has examples."""

import os as _os

_mask = _os.sched_getaffinity(0)
from ._isonorm import Tensor, __version__

# OpenBLAS loads libgomp. If OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY is set, libgomp pins the loading thread to
# one core.
_os.sched_setaffinity(0, _mask)

from ._compare import assert_equivalent, compare
from ._files import FileResult, convert, prove, verify
from ._result import Difference, Probe, Result
from ._tensor import tensor

__all__ = [
    "Difference",
    "FileResult",
    "Probe",
    "Result",
    "Tensor",
    "assert_equivalent",
    "compare",
    "convert",
    "prove",
    "tensor",
    "verify",
]
