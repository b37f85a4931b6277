"""Modules that compute in a coarser dtype than the comparison's, such as a norm that casts its input to f32."""

import math

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from ._models import TORCH_DTYPES, coarser, flat, hooked, real, spoken

MAP, LOSS = object(), object()


#: An entry of the result is an entry of the operand; the backward finds it by its value.
SELECTING = {"amax", "amin", "aminmax", "max", "min", "median", "nanmedian"}
WHOLE = {torch.float64: torch.int64, torch.float32: torch.int32}


class MovedResults(TorchDispatchMode):
    """While it lasts, every new result of an operation on tensors in `dtype` is moved by one unit in the last place, entry by
    entry up or down by `seed`. These stay: views, what is changed in place, zeros, infinities, NaN and whole numbers, and
    results that select an entry. As the library does it (equivalence/causes/moved_results.h). The largest and the least
    number of the dtype stay, too: they are masks, in which scores are absorbed."""

    def __init__(self, seed, dtype):
        super().__init__()
        self.dtype, self.generator = TORCH_DTYPES[dtype], torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = func(*args, **(kwargs or {}))
        name, largest = func._schema.name.partition("::")[2], any(isinstance(x, float) and math.isinf(x) for x in args)
        if name in SELECTING or largest and "norm" in name:
            return given
        operands = {t.untyped_storage().data_ptr() for t in flat((args, kwargs)) if t.dtype.to_real() == self.dtype}
        if operands:
            for t in map(real, flat(given)):
                if t.dtype == self.dtype and t.numel() and t.untyped_storage().data_ptr() not in operands:
                    self.move(t)
        return given

    def move(self, t):
        up = torch.randint(0, 2, t.shape, generator=self.generator, dtype=WHOLE[t.dtype]).to(t.device)
        size, info = t.abs(), torch.finfo(t.dtype)
        rounded = (size < info.max) & ((t != t.trunc()) | (size * info.eps >= 1))
        t.view(WHOLE[t.dtype]).add_((2 * up - 1) * rounded)


class CoarseResults(TorchDispatchMode):
    """While it lasts, notes who runs an operation whose result is coarser than `dtype`.

    noted: three dicts {who: dtype}, in order of execution, the likelier reason for a difference first: modules that cast from
           `dtype`; the map or the loss, if it does; and whoever makes a coarser tensor of something else, such as
           torch.arange(n, dtype=torch.float32). A module is known by its name, map and loss by MAP and LOSS.
    """

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype = model, TORCH_DTYPES[dtype]
        self.noted, self.outside, self.inside, self.handles = ({}, {}, {}), MAP, [], []

    def __enter__(self):
        def left(*_):  # returns None: a result would replace the module's output
            self.inside.pop()
            self.outside = LOSS

        for name, module in hooked(self.model):
            self.handles.append(module.register_forward_pre_hook(lambda *_, name=name: self.inside.append(name)))
            self.handles.append(module.register_forward_hook(left, always_call=True))
        return super().__enter__()

    def __exit__(self, *raised):
        for handle in self.handles:
            handle.remove()
        return super().__exit__(*raised)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = func(*args, **(kwargs or {}))
        found = [t.dtype for t in flat(given) if coarser(t.dtype, self.dtype)]
        if found and (self.inside or torch.is_grad_enabled()):  # not in a backward
            cast = any(t.dtype == self.dtype for t in flat(args))
            kind = 2 if not cast else 0 if self.inside else 1
            self.noted[kind].setdefault(self.inside[-1] if self.inside else self.outside, found[0])
        return given


class Autocasts(TorchFunctionMode):
    """While it lasts, collects in `noted` the dtypes to which torch.autocast would cast. It does not cast f64."""

    def __init__(self):
        super().__init__()
        self.noted = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.noted.update(torch.get_autocast_dtype(d) for d in ("cpu", "cuda") if torch.is_autocast_enabled(d))
        return func(*args, **(kwargs or {}))

    def spoken(self):
        return " and ".join(sorted(map(spoken, self.noted)))


class WithoutCasts(TorchDispatchMode):
    """While it lasts, every operation that would compute in a coarser dtype than `dtype` computes in `dtype`."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = TORCH_DTYPES[dtype]

    def __enter__(self):
        self.default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        return super().__enter__()

    def __exit__(self, *raised):
        torch.set_default_dtype(self.default)
        return super().__exit__(*raised)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(torch.dtype, self.finer, (args, kwargs or {}))
        if all(a.alias_info is None for a in func._schema.arguments):  # neither in place nor a view
            args = tree_map_only(torch.Tensor, lambda t: t.to(self.finer(t.dtype)), args)
        return func(*args, **kwargs)

    def finer(self, dtype):
        return self.dtype if coarser(dtype, self.dtype) else dtype


def computing_coarsely(sides):
    """(sentence, dtype): who computes in a coarser dtype, and in which; ("", None) if nobody does.

    sides: [("a" or "b", its CoarseResults, the name of the module that differs first, or None)]
    """
    shown, names = {}, set()
    kind = next((k for k in range(3) if any(side.noted[k] for _, side, _ in sides)), None)
    if kind is None:
        return "", None
    for of, side, first in sides:
        noted = side.noted[kind]
        names |= {who_is(of, name, side.model) for name in noted}
        for name in [first] if first in noted else list(noted)[:1]:
            shown[who_is(of, name, side.model)] = noted[name]
    more, dtype = len(names) - len(shown), max(shown.values(), key=lambda d: torch.finfo(d).eps)
    who = f"{', '.join(shown)} and {more} more" if more else " and ".join(shown)
    return f"{who} compute{'s' if len(names) == 1 else ''} in {spoken(dtype)}", dtype


def who_is(of, who, model):
    if who in (MAP, LOSS):
        return "the map" if who is MAP else "the loss"
    kind = type(model.get_submodule(who)).__name__
    return f"{who} of {of} ({kind})" if who else f"{of} ({kind})"
