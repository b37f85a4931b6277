"""Where two modules first differ: in the forward in order of execution, and if that agrees, in the backward."""

import torch

from . import _isonorm
from ._calls import before, called, matched, paired_modules
from ._models import ours
from ._result import Difference


def off(x, reference):
    """The deviation; infinite for NaN or infinities in one alone. Equal ones do not count."""
    both = x.isfinite() & reference.isfinite()
    if not both.all():
        same = x.isnan() & reference.isnan() | (x == reference)
        x, reference = (torch.where(both | ~same, t, 0) for t in (x, reference))
    d = _isonorm.deviation(ours(x), ours(reference))
    return float("inf") if d != d else d


class Located:
    """Of a point at which the two differ.

    first: the Difference.
    pair:  the two calls where they differ, if it is in a module.
    end:   which of its tensors differs: "input", "output", "grad_input", or the name of a parameter with ".grad".
    alone: whether that module differs with inputs that agree: it is the module itself that differs.
    """

    def __init__(self, points, point, found):
        self.points, self.point, self.found = points, point, found  # found: Comparison.first_difference
        self.batch, self.parameters = points.batches(point - 1), points.parameters(point)
        self.partners = paired_modules(points.a, points.b, points.mapping)
        self.pair, self.end, self.alone, self.first = None, None, False, self.compared()
        self.of_a, self.of_b, self.pairs, self.gradients = [], [], [], {}
        try:
            self.watch()
        except ValueError:  # a module cannot run with hooks: the verdict stays without a place
            return
        self.forward() or self.backward()

    def watch(self):
        """Runs a, b and the controls once more, and notes the calls of their modules."""
        points = self.points
        of_a, ran = called(points.a, points.dtype, lambda: points.of_a(self.parameters, self.batch))
        of_b, other = called(points.b, points.dtype, lambda: points.of_b(self.parameters, self.batch))
        self.controls = [
            called(points.a, points.dtype, lambda: points.control(self.parameters, self.batch, c))[0]
            for c in range(1, points.controls + 1)
        ]
        self.of_a, self.of_b, self.index = of_a, of_b, {id(call): i for i, call in enumerate(of_a)}
        self.gradients = dict(zip(points.names(self.batch), zip(ran.gradients, other.gradients)))
        self.pairs = list(matched(self.partners, of_a, of_b))

    def compared(self):
        """The Difference among the compared tensors, without a place: an output if one differs."""
        first = next((t for t in self.found["tensors"] if t["quantity"] == "output"), self.found)
        name = first["tensor"] or "the loss"
        return Difference(first["quantity"], name, name, first["deviation"], first["bound"], first["as_a_whole"])

    def limit(self, call, of):
        """The bound of a tensor of a call of a, by what its controls do there."""
        own, worst = of(call), 0.0
        for calls in self.controls:
            moved = of(calls[self.index[id(call)]]) if self.index[id(call)] < len(calls) else None
            if moved is not None and moved.shape == own.shape:
                worst = max(worst, off(moved, own))
        return _isonorm.bound(worst, self.points.dtype)

    def difference(self, x, y, of):
        """(deviation, bound) of a tensor that two calls have if they differ there; None if they agree, or a has none. A gradient
        that b does not have is 0."""
        own, other = of(x), of(y)
        if own is not None and other is None:
            other = torch.zeros_like(own)
        if own is None or own.shape != other.shape:
            return None
        deviation, limit = off(other, own), self.limit(x, of)
        return (deviation, limit) if not deviation <= limit else None

    def any_difference(self, x, y, several, of_both=False):
        """The first difference() among tensors of the calls; several(call) is a list or a dict of tensors."""
        keys = range(min(len(several(x)), len(several(y)))) if isinstance(several(x), list) else sorted(several(x))
        if of_both:
            keys = [k for k in keys if k in several(y)]
        found = (self.difference(x, y, lambda call, k=k: entry(several(call), k)) for k in keys)
        return next((d for d in found if d is not None), None)

    def found_in_b(self, x):
        """True if some module of b has the result of a call of a as an input or an output."""
        limits = [self.limit(x, lambda call, i=i: entry(call.outputs, i)) for i in range(len(x.outputs))]
        others = [t for call in self.of_b for t in (*call.outputs, *call.inputs)]
        return bool(limits) and all(
            any(t.shape == o.shape and off(t, o) <= limit for t in others) for o, limit in zip(x.outputs, limits)
        )

    def note(self, what, pair, end, numbers):
        self.pair, self.end, (x, y) = pair, end, pair
        self.first = Difference(what, x.name or "a itself", y.name or "b itself", *numbers)
        return True

    def forward(self):
        """The first module that gives something else than its partner, unless what follows from it agrees again."""
        agree = {id(x) for x, y in self.pairs if not self.any_difference(x, y, lambda c: c.outputs)}
        differing = [(x, y) for x, y in self.pairs if id(x) not in agree]
        if not differing:
            return False
        followed = self.followed(agree)
        for x, y in differing:
            if id(x) in followed:
                continue
            given = self.any_difference(x, y, lambda c: c.inputs)
            if given is not None:
                return self.note("input", (x, y), "input", given)
            self.alone = True
            return self.note("output", (x, y), "output", self.any_difference(x, y, lambda c: c.outputs))
        return False

    def followed(self, agree):
        """Calls of a on which a later call depends that agrees with its partner or with anything in b: their results are in b."""
        known, found = set(), set()
        for x in reversed(self.of_a):
            if x.nodes and all(n in known for n in x.nodes):
                found.add(id(x))
            if id(x) in agree or self.found_in_b(x):
                known |= before(x.nodes, known)
        return found

    def backward(self):
        """The innermost module that gets the same gradient as its partner, and gives another one back."""
        candidates = []
        for x, y in self.pairs:
            if self.any_difference(x, y, lambda c: c.gradients):
                continue
            end, back = "grad_input", self.any_difference(x, y, lambda c: c.input_gradients, of_both=True)
            if back is None:
                end, back = self.parameter_gradient(x)
            if back is not None:
                candidates.append(((x.name.count("."), x.name != ""), (x, y), end, back))
        if not candidates:
            return False
        _, (x, y), end, back = max(candidates, key=lambda c: c[0])
        for inner, partner in reversed(self.pairs):  # work of x between its submodules is wrong after one of them
            if inner.name.startswith(f"{x.name}." if x.name else "") and inner is not x:
                if d := self.any_difference(inner, partner, lambda c: c.gradients):
                    return self.note("gradient of the output", (inner, partner), "output.grad", d)
        self.alone = True
        return self.note("gradient from the backward", (x, y), end, back)

    def parameter_gradient(self, call):
        """(its name in the module and ".grad", difference()) of the gradient of a parameter that the module itself has, if it is
        called once; (None, None) if none differs."""
        if sum(c.name == call.name for c in self.of_a) == 1:
            for own, _ in call.module.named_parameters(recurse=False):
                name = f"{call.name}.{own}".strip(".")
                for t in self.found["tensors"]:
                    if t["tensor"] == name and t["quantity"] == "gradient":
                        return f"{own}.grad", (t["deviation"], t["bound"])
        return None, None


def entry(several, key):
    """several[key], of a list or a dict; None if it is not there."""
    if isinstance(several, dict):
        return several.get(key)
    return several[key] if key < len(several) else None
