"""Modules of torch as a comparison runs them: copies in one dtype, outputs and inputs as flat lists, random numbers that repeat."""

import contextlib
import copy

import torch

from . import _isonorm

TORCH_DTYPES = {"f64": torch.float64, "f32": torch.float32}


def ours(t):
    """A torch tensor as one of isonorm, of the same memory where it lies on the CPU."""
    return _isonorm.tensor(t.detach().cpu())


def copied(module, dtype):
    """A copy of a module that computes in `dtype`; the module stays as it is. Raises ValueError where it cannot be copied."""
    try:
        return copy.deepcopy(module).to(dtype=TORCH_DTYPES[dtype])
    except Exception as e:  # a module may hold what no copy can be made of
        raise ValueError(f"compare: {type(module).__name__} cannot be copied: {e}") from e


def flat(value):
    """The tensors in nested tuples, lists, dicts and dataclasses, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    elif not isinstance(value, (tuple, list)):
        return []
    return [t for v in value for t in flat(v)]


def floating(value):
    """As flat(), of those with a floating dtype."""
    return [t for t in flat(value) if t.is_floating_point()]


def rebuilt(value, change):
    """The same nesting with change(tensor) for each tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {k: rebuilt(v, change) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [rebuilt(v, change) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def in_dtype(value, dtype):
    """Floating tensors, however nested, as copies in `dtype`; the others as they are."""
    return rebuilt(value, lambda t: t.detach().to(TORCH_DTYPES[dtype], copy=True) if t.is_floating_point() else t)


def arguments(inputs):
    """What a batch's inputs mean for a call: a tuple is positional, a dict has names."""
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


@contextlib.contextmanager
def draws(seed):
    """While it lasts torch draws from the same place; then as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class Loss:
    """The number whose gradients are compared: the user's of (output, targets), or half the mean squared distance of
    the outputs from random numbers, which sees every entry."""

    def __init__(self, loss):
        self.loss = loss

    def parts(self, batch):
        """(inputs, targets) of a batch."""
        if self.loss is None:
            return batch, None
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            raise ValueError("compare: with a loss a batch is a pair (inputs, targets)")
        return batch

    def __call__(self, output, targets, seed):
        if self.loss is not None:
            return self.loss(output, targets)
        total = 0
        generator = torch.Generator().manual_seed(seed)
        for t in floating(output):
            if t.numel() == 0:
                continue
            goal = torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t)
            total = total + (t - goal).square().mean() / 2
        if not isinstance(total, torch.Tensor):
            raise ValueError("compare: the module gives no floating tensor")
        return total


class Batches:
    """The batch of a point or step, counted from 0; a list begins again at its end. Floating tensors are in `dtype`."""

    def __init__(self, batches, dtype):
        if not callable(batches):
            batches = list(batches)
            if not batches:
                raise ValueError("compare: there are no batches")
        self.batches, self.dtype = batches, dtype

    def __call__(self, at):
        batch = self.batches(at) if callable(self.batches) else self.batches[at % len(self.batches)]
        return in_dtype(batch, self.dtype)
