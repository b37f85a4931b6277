"""Modules of torch as a comparison runs them: copies in one dtype, outputs and inputs as flat lists, random numbers that repeat."""

import collections.abc
import contextlib
import copy
import re
import traceback

import torch
from torch.overrides import TorchFunctionMode

from . import _isonorm

PLAIN = (bool, int, float, str)
COMPARED = (torch.Tensor, *PLAIN)
TORCH_DTYPES = {"f64": torch.float64, "f32": torch.float32}


def spoken(dtype):
    """f32 of torch.float32."""
    return re.sub("float|complex", lambda m: m[0][0], str(dtype).removeprefix("torch."))


def coarser(dtype, than):
    return dtype.is_floating_point and torch.finfo(dtype).eps > torch.finfo(than).eps


def real(t):
    """Complex numbers as pairs, as a view if possible; other tensors unchanged."""
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def dense(t):
    """A sparse tensor with its zeros."""
    if t.is_nested:
        raise ValueError("compare: a nested tensor cannot be compared: give its to_padded_tensor(0.0)")
    return t if t.layout is torch.strided else t.to_dense()


def ours(t):
    """A torch tensor as an isonorm tensor, sharing memory on the CPU; complex numbers as pairs."""
    return _isonorm.tensor(real(dense(t.detach())).cpu())


def converted(t, dtype):
    """A tensor in "f64" or "f32", complex numbers with both parts; whole numbers stay."""
    if t.is_complex():
        return t.to(TORCH_DTYPES[dtype].to_complex())
    return t.to(TORCH_DTYPES[dtype]) if t.is_floating_point() else t


class WithoutGraphs(TorchFunctionMode):
    """While it lasts, deepcopy() copies results of operations, which it otherwise refuses, without their graph."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__deepcopy__ and args[0].grad_fn is not None:
            memo = args[1]
            return memo.setdefault(id(args[0]), args[0].detach().clone())
        return func(*args, **(kwargs or {}))


def duplicate(module):
    """A deep copy. A module may hold results of its last forward, such as attention weights, or a weight that it computes."""
    with WithoutGraphs():
        return copy.deepcopy(module)


def copied(module, dtype):
    """A copy of a module that computes in `dtype`; the module stays as it is. Raises ValueError where it cannot be copied, or
    the copy would train in another way: parameters lose their hooks, and those in one memory get memories of their own."""
    for name, p in module.named_parameters():
        if p._backward_hooks or p._post_accumulate_grad_hooks:
            raise ValueError(f"compare: {name} of {type(module).__name__} has a hook, which its copies would not have")
    if shared := sharing_memory(module):
        raise ValueError(f"compare: {shared[0]} and {shared[1]} of {type(module).__name__} share memory, which their copies would not")
    try:
        return duplicate(module)._apply(lambda t: converted(t, dtype))  # to() would drop imaginary parts
    except Exception as e:  # a module may hold an object that cannot be copied
        raise ValueError(f"compare: {type(module).__name__} cannot be copied: {e}") from e


def hooked(model):
    """named_modules() that can have forward hooks: all except TorchScript's."""
    return [(n, m) for n, m in model.named_modules() if not isinstance(m, torch.jit.ScriptModule)]


def sharing_memory(module):
    """The names of two parameters with overlapping memory; None if there are none."""
    spans = []
    for name, p in module.named_parameters():
        if p.numel():
            reach = sum((size - 1) * stride for size, stride in zip(p.shape, p.stride())) + 1
            spans.append((str(p.device), p.data_ptr(), p.data_ptr() + reach * p.element_size(), name))
    spans.sort()
    return next(((x[3], y[3]) for x, y in zip(spans, spans[1:]) if x[0] == y[0] and y[1] < x[2]), None)


def is_dataclass(value):
    return hasattr(value, "__dataclass_fields__") and not isinstance(value, type)


def leaves(value):
    """The leaves of nested tuples, lists, mappings and dataclasses in order; a mapping's leaves are sorted by name."""
    if isinstance(value, collections.abc.Mapping):
        value = [value[name] for name in sorted(value, key=str)]
    elif is_dataclass(value):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    elif not isinstance(value, (tuple, list)):
        return [value]
    return [leaf for v in value for leaf in leaves(v)]


def flat(value):
    """The tensors among leaves()."""
    return [t for t in leaves(value) if isinstance(t, torch.Tensor)]


def floating(value):
    """As flat(), only leaves with a floating dtype."""
    return [t for t in flat(value) if t.is_floating_point()]


def measured(value):
    """As floating(), and numbers of Python with a fraction, and complex tensors as pairs."""
    found = []
    for leaf in leaves(value):
        if isinstance(leaf, float):
            found.append(torch.tensor(leaf, dtype=torch.float64, device="cpu"))
        elif isinstance(leaf, torch.Tensor) and leaf.is_complex():
            found.append(torch.view_as_real(dense(leaf).resolve_conj()))
        elif isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            found.append(dense(leaf))
    return found


def exact(value):
    """The leaves without rounding: tensors of whole numbers, and whole numbers and words of Python."""
    tensors = [t for t in flat(value) if not t.is_floating_point() and not t.is_complex()]
    return tensors + [v for v in leaves(value) if isinstance(v, PLAIN) and not isinstance(v, float)]


def named_leaves(value, name="output"):
    """{name: leaf} of leaves(), a mapping's in its own order: "output[logits]", "output[0]"."""
    if isinstance(value, collections.abc.Mapping):
        parts = [(f"{name}[{key}]", v) for key, v in value.items()]
    elif is_dataclass(value):
        parts = [(f"{name}[{field}]", getattr(value, field)) for field in value.__dataclass_fields__]
    elif isinstance(value, (tuple, list)):
        parts = [(f"{name}[{i}]", v) for i, v in enumerate(value)]
    else:
        return {name: value}
    return {n: leaf for part, v in parts for n, leaf in named_leaves(v, part).items()}


def is_keyed(name):
    return re.search(r"\[\D", name) is not None


def rebuilt(value, change):
    """A copy of what leaves() takes apart, with change(tensor) for each tensor. Other leaves are deep copies: a module may change
    them, such as a cache. Raises ValueError if a leaf cannot be copied."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, collections.abc.Mapping):
        parts = {k: rebuilt(v, change) for k, v in value.items()}
        if type(value) is dict or not isinstance(value, collections.abc.MutableMapping):
            return parts
        made = copy.copy(value)  # the same class, because modules may use its attributes (BatchEncoding)
        for k, v in parts.items():
            made[k] = v
        return made
    if is_dataclass(value):
        made = copy.copy(value)
        for name in value.__dataclass_fields__:
            object.__setattr__(made, name, rebuilt(getattr(value, name), change))
        return made
    if isinstance(value, (tuple, list)):
        parts = [rebuilt(v, change) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    try:
        return copy.deepcopy(value)
    except Exception as e:
        raise ValueError(f"compare: a {type(value).__name__} in a batch cannot be copied: {e}") from e


def in_dtype(value, dtype):
    """Copies of tensors, however nested: the floating ones in `dtype`."""
    return rebuilt(value, lambda t: t.detach().to(TORCH_DTYPES[dtype] if t.is_floating_point() else t.dtype, copy=True))


def arguments(inputs):
    """The positional and the named arguments of a batch's inputs: a tuple or list is positional, a mapping has names."""
    if isinstance(inputs, collections.abc.Mapping):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


@contextlib.contextmanager
def naming(who, dtype, model=None):
    """What is raised inside becomes a ValueError of one line that says who raised it: `who`, in the innermost submodule of
    `model`."""
    try:
        yield
    except Exception as e:
        names = {id(m): n for n, m in model.named_modules()} if model else {}
        objects = [id(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(e.__traceback__)]
        inside = [names[i] for i in objects if i in names]
        where = f"{inside[-1]} of {who}" if inside and inside[-1] else who
        lines = str(e).splitlines() or [""]
        two_dtypes = "(?=.*(double|float64))(?=.*float(?!64))|not implemented for 'Double'"
        of_dtype = dtype == "f64" and re.search(two_dtypes, lines[0], re.IGNORECASE)
        hint = '; copies run in f64, with dtype="f32" in f32' if of_dtype else ""
        said = f": {lines[0]}" if lines[0] else ""
        raise ValueError(f"compare: {where} raises {type(e).__name__}{said}{hint}") from e


@contextlib.contextmanager
def made_in(dtype):
    """While it lasts, `dtype` is torch's default dtype, as if the user computed in it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(TORCH_DTYPES.get(dtype, dtype))
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def draws(seed, dtype):
    """While it lasts, torch draws from the same state, in `dtype` if none is named; afterwards as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]), made_in(dtype):
        torch.manual_seed(seed)
        yield


class Loss:
    """The number whose gradients are compared: the user's of (output, targets), or half the mean squared distance of
    the outputs from random numbers, which sees every entry."""

    def __init__(self, loss, dtype):
        self.loss = copied(loss, dtype) if isinstance(loss, torch.nn.Module) else loss  # a module may hold class weights
        self.dtype, self.names = dtype, None

    def parts(self, batch):
        """(inputs, targets) of a batch."""
        if self.loss is None:
            return batch, None
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            raise ValueError("compare: with a loss a batch is a pair (inputs, targets)")
        return batch

    def leaves(self, output):
        """{name: leaf} of the output's tensors, numbers and words, by the names and in the order of the first output that was
        given. Raises ValueError if both have keys, and not the same, or their counts differ."""
        found = {n: leaf for n, leaf in named_leaves(output).items() if isinstance(leaf, COMPARED)}
        if self.names is None:
            self.names = list(found)
        if set(found) == set(self.names):
            return {n: found[n] for n in self.names}
        if len(found) != len(self.names) or any(map(is_keyed, found)) and any(map(is_keyed, self.names)):
            raise ValueError(f"compare: a gives {', '.join(self.names) or 'nothing'}, b gives {', '.join(found) or 'nothing'}")
        return dict(zip(self.names, found.values()))

    def __call__(self, output, targets, seed):
        if self.loss is not None:
            with naming("the loss", self.dtype):
                number = self.loss(output, targets)
            if not isinstance(number, torch.Tensor):
                raise ValueError(f"compare: the loss is {number!r}, expected a tensor of one number")
            if number.numel() != 1 or not number.is_floating_point():
                shape, of = list(number.shape), str(number.dtype).removeprefix("torch.")
                raise ValueError(f"compare: the loss has shape {shape} and dtype {of}, expected one floating number")
            return number
        total = 0
        generator = torch.Generator().manual_seed(seed)
        for t in measured(list(self.leaves(output).values())):
            if t.numel() == 0:
                continue
            goal = torch.randn(t.shape, generator=generator, dtype=torch.float64, device="cpu").to(t)
            total = total + torch.where(t.isfinite(), t - goal, 0).square().mean() / 2
        if not isinstance(total, torch.Tensor):
            given = ", ".join(f"{n} ({type(v).__name__})" for n, v in named_leaves(output).items()) or "nothing"
            raise ValueError(f"compare: a module gives no floating tensor that has entries: it gives {given}")
        return total
