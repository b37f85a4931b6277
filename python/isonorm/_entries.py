"""Entries of outputs: those that are exact, and those that are not finite."""

import torch

from ._models import real


def shapes(leaves):
    """Of tensors their shapes, of numbers and words of Python their types. A mask is not the numbers 0 and 1."""

    def shape(x):
        if not isinstance(x, torch.Tensor):
            return type(x).__name__
        return f"bool {list(x.shape)}" if x.dtype is torch.bool else list(x.shape)

    return [shape(x) for x in leaves]


def kinds(t):
    """Of each entry: 0 if it is finite, else which of NaN, inf and -inf it is."""
    t = real(t)
    return t.isnan() + 2 * t.isposinf().int() + 3 * t.isneginf().int()


def finite(t, reference):
    """t, with 0 in entries whose reference is not finite."""
    return t if reference.isfinite().all() else torch.where(reference.isfinite(), t, 0)


def same_exact(a, b, controls):
    """Whether b's leaves are a's, but for entries that rounding moves in the controls."""
    for x, y, *moved in zip(a, b, *controls):
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and torch.equal(x, y):
            continue
        if any(q != p and all(m == p for m in others) for p, q, *others in zip(*map(entries, (x, y, *moved)))):
            return False
    return True


def entries(x):
    return x.flatten().tolist() if isinstance(x, torch.Tensor) else [x]
