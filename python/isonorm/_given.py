"""Checks of compare()'s arguments: an invalid one raises a ValueError of one line, before anything runs."""

import collections.abc
import numbers

import torch
from torch.nn.parameter import is_lazy

from ._models import naming


def kind(value):
    """"of type Tensor", "the class GELU", "3": for a message."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else f"of type {type(value).__name__}"


def refuse(name, value, expected):
    raise ValueError(f"compare: {name} is {kind(value)}, expected {expected}")


def check_module(who, module):
    """Raises ValueError unless `module` is a torch.nn.Module whose parameters and buffers have values."""
    if not isinstance(module, torch.nn.Module):
        refuse(who, module, "a torch.nn.Module")
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(t):
            raise ValueError(f"compare: {name} of {who} is lazy and has no shape yet: run {who} once on a batch")
        if t.is_meta:
            raise ValueError(f"compare: {name} of {who} is on the meta device and has no values")


def iterable(batches):
    return callable(batches) or hasattr(batches, "__iter__") or hasattr(batches, "__getitem__")


def check_options(batches, loss, map, progress, dtype, seed, counts):
    """Raises ValueError for options of compare() that have another type than it says. counts: {name: number}."""
    if torch.is_inference_mode_enabled():
        raise ValueError("compare: runs under torch.inference_mode(), where nothing has a gradient")
    if isinstance(batches, torch.Tensor):
        refuse("batches", batches, "a list of batches: for a single one [batch]")
    if isinstance(batches, (str, collections.abc.Mapping)) or not iterable(batches):
        refuse("batches", batches, "a list or another iterable of batches, or a function of the number of a point or step")
    if loss is not None and (isinstance(loss, type) or not callable(loss)):
        refuse("loss", loss, "a function of output and targets, such as torch.nn.functional.cross_entropy")
    if not (map is None or map == "names" or callable(map) or isinstance(map, collections.abc.Mapping)):
        refuse("map", map, "'names', a dict, a function or None")
    if isinstance(map, collections.abc.Mapping):
        for name, rule in map.items():
            if not (isinstance(rule, str) or callable(rule)):
                refuse(f"map[{name!r}]", rule, "the name of a parameter of a, or a function of the dict of a's parameters")
    if progress is not None and not callable(progress):
        refuse("progress", progress, "a function of a dict")
    if dtype not in (None, "f64", "f32"):
        raise ValueError(f"compare: dtype is {dtype!r}, expected 'f64' or 'f32'")
    if not isinstance(seed, numbers.Integral):
        refuse("seed", seed, "a whole number")
    for name, count in counts.items():
        if not isinstance(count, numbers.Integral) or count < 1:
            refuse(name, count, "a whole number of at least 1")


def naming_map(map, dtype):
    """The map; its functions raise ValueErrors of one line."""
    if callable(map):
        return named("the map", map, collections.abc.Mapping, "a dict of b's parameters", dtype)
    if not isinstance(map, collections.abc.Mapping):
        return map
    return {
        name: named(f"the map of {name}", rule, torch.Tensor, "a tensor", dtype) if callable(rule) else rule
        for name, rule in map.items()
    }


def named(who, rule, expected, spoken, dtype):
    def ruled(parameters):
        with naming(who, dtype):
            made = rule(parameters)
        if not isinstance(made, expected):
            refuse(f"what {who} makes", made, spoken)
        for name, value in made.items() if isinstance(made, collections.abc.Mapping) else ():
            if not isinstance(value, torch.Tensor):
                refuse(f"what {who} makes for {name}", value, "a tensor")
        return made

    return ruled
