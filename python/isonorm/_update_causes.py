"""Why two trainings differ though their functions agree: a cause is named if the two agree as soon as b has a's instead of its
own."""

from dataclasses import replace

import torch

from . import _causes, _isonorm
from ._locate import off
from ._models import ours
from ._training import pair

PARTS = ("optimizer", "schedule", "accumulate", "clip")


def copies(tensors):
    return [ours(t.torch().clone()) for t in tensors]


class Step:
    """Both trainings at a step, counted from 1: `tensors` {("loss", "gradient" or "weight", name): (of a, of b)}, the `rates` of
    that step, and what the optimizers hold (held())."""

    def __init__(self, points, recipes, step):
        reference, run = pair(points, recipes)
        for _ in range(step):
            (loss, of_a), (other, of_b) = reference.differentiate(), run.differentiate()
            before = copies(run.expected()), copies(run.weights())
            self.rates = [rate(side.updates.optimizer) for side in (reference, run)]
            reference.update()
            weights, expected, names = run.update()
        self.tensors = {("loss", ""): (number(loss), number(other))}
        self.tensors.update({("gradient", n): (x, y) for n, x, y in zip(reference.names, of_a, of_b)})
        self.tensors.update({("weight", n): (x, y) for n, x, y in zip(names, expected, weights)})
        self.before = dict(zip(names, zip(*before)))
        self.optimizers = [side.updates.optimizer for side in (reference, run)]
        self.held = [held(side) for side in (reference, run)]

    def agree(self, place):
        """Whether the tensors agree that differed there, each within its bound."""
        for t in place["tensors"]:
            x, y = self.tensors[t["quantity"], t["tensor"]]
            if not off(y.torch(), x.torch()) <= t["bound"]:
                return False
        return True


def number(x):
    return _isonorm.tensor(torch.tensor([x], dtype=torch.float64).numpy())


def rate(optimizer):
    groups = getattr(optimizer, "param_groups", None)
    return groups[0].get("lr") if groups else None


def held(side):
    """{name of a parameter: the options of its group in the optimizer}"""
    names = {id(p): n for n, p in side.model.named_parameters()}
    found = {}
    for group in getattr(side.updates.optimizer, "param_groups", ()):
        options = {k: v for k, v in group.items() if k not in ("params", "param_names", "initial_lr")}
        found.update({names[id(p)]: options for p in group["params"] if id(p) in names})
    return found


def named(points, recipes, place):
    """One sentence on the first step that differs; None if nothing is known."""
    of_a, of_b = recipes
    own = Step(points, recipes, place["step"])
    differing = [part for part in PARTS if getattr(of_a, part) != getattr(of_b, part)]
    for part in differing:
        if Step(points, (of_a, replace(of_b, **{part: getattr(of_a, part)})), place["step"]).agree(place):
            return f"{said_of(part)}: {detail(part, points, recipes, place, own)}; with a's {part} the two agree"
    if len(differing) > 1:
        return f"the training: with a's {' and '.join(differing)} the two agree"
    if place["quantity"] != "weights":
        return None
    at = f"at step {place['step']} the gradients agree and the updated weights do not"
    if options := other_options(points, own):
        return f"the update: {at}; {spoken(options)}"
    mapped = [t["tensor"] for t in place["tensors"] if t["tensor"] not in points.mapping.plain.values()]
    if mapped:
        return f"the update does not commute with the map of {mapped[0]}: {at}"
    return f"the update: {at}"


def said_of(part):
    return f"the {part}" if part in ("optimizer", "schedule") else part


def detail(part, points, recipes, place, own):
    of_a, of_b = (getattr(recipe, part) for recipe in recipes)
    if part == "schedule":
        return f"at step {place['step']} the rate is {own.rates[0]!r} in a, {own.rates[1]!r} in b"
    if part != "optimizer":
        return f"{shown(of_a)} in a, {shown(of_b)} in b"
    kinds = [type(o).__name__ for o in own.optimizers]
    options = other_options(points, own)
    if kinds[0] == kinds[1] and options:
        alone = {k: v for k, v in options.items() if with_option(points, recipes, place, k).agree(place)}
        return spoken(dict(list(alone.items())[:1]) or options)
    said = arithmetic(place, own)
    kind = f"both are {kinds[0]}" if kinds[0] == kinds[1] else f"a's is {kinds[0]}, b's is {kinds[1]}"
    return kind + (f" ({said})" if said else "")


def shown(value):
    return getattr(value, "__name__", "a function") if callable(value) else repr(value)


def other_options(points, own):
    """{option: [(name in b, of a, of b)]} of parameters that follow from a's entry by entry; the option "" is whether the optimizer
    has it."""
    found = {}
    for of_a, of_b in points.mapping.plain.items():
        x, y = own.held[0].get(of_a), own.held[1].get(of_b)
        if (x is None) != (y is None):
            found.setdefault("", []).append((of_b, x is not None, y is not None))
        for key in x or ():
            if y and key in y and not same(x[key], y[key]):
                found.setdefault(key, []).append((of_b, x[key], y[key]))
    return found


def same(x, y):
    return bool(x == y) if not any(isinstance(v, torch.Tensor) for v in (x, y)) else float(x) == float(y)


def spoken(options):
    said = []
    for key, of in options.items():
        name, x, y = of[0]
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        if key == "":
            said.append(f"{name}{more} {'is' if not more else 'are'} in the optimizer of {'a' if x else 'b'} alone")
        else:
            said.append(f"{key} of {name}{more} is {x!r} in a, {y!r} in b")
    return ", ".join(said)


def with_option(points, recipes, place, key):
    """The step with one option of a's optimizer in b's."""
    of_a, of_b = recipes
    inverse = {m: n for n, m in points.mapping.plain.items()}

    def optimizer(parameters):
        made = of_b.optimizer(parameters)
        names = {id(p): n for n, p in parameters.model.named_parameters()}
        for group in made.param_groups:
            of = {inverse.get(names.get(id(p))) for p in group["params"]}
            values = [options[key] for name, options in own.items() if name in of and key in options]
            if values:
                group[key] = values[0]
        return made

    own = held(pair(points, recipes)[0])
    return Step(points, (of_a, replace(of_b, optimizer=optimizer)), place["step"])


def arithmetic(place, own):
    """The known mistake that explains the first step (equivalence/explain); None if none does. A first step does not tell another
    rate from a momentum that begins otherwise: if both optimizers name one rate, that is no cause."""
    if place["step"] != 1 or place["quantity"] != "weights":
        return None
    tensors = {}
    for name, (x, y) in own.before.items():
        if ("gradient", name) in own.tensors:
            tensors[name] = (x, y)
            tensors[f"{name}.grad"], tensors[f"{name}.after"] = own.tensors["gradient", name], own.tensors["weight", name]
    known = [t for t in place["tensors"] if t["tensor"] in own.before]
    said = {_causes.arithmetic(f"{t['tensor']}.after", t["bound"], place["dtype"], tensors) for t in known}
    if len(said) != 1 or None in said or any("learning rate" in s for s in said) and own.rates[0] == own.rates[1] is not None:
        return None
    return said.pop()
