"""tensor(): arrays of NumPy, torch and others as tensors of isonorm."""

from typing import Any, Optional

from . import _isonorm


def tensor(array: Any, copy: Optional[bool] = None) -> _isonorm.Tensor:
    """The array (NumPy's, torch's, or any with DLPack or a buffer) as a Tensor over the same memory.

    f32, f64, bf16, i64 and u8 of any shape up to eight dimensions and any strides that are not negative; bool becomes u8.
    copy: None copies if memory cannot be shared (read-only, negative strides, not aligned), False raises then, True always copies.
    Raises ValueError on a torch tensor that requires a gradient, another dtype, and memory of a GPU.
    """
    return _isonorm.tensor(array, None if copy is None else bool(copy))
