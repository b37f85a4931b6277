"""How the parameters of the second module follow from those of the first."""

import torch

from . import _isonorm
from ._models import ours
from ._result import Unmatched


class Map:
    """b's parameters as functions of a's: by name, by a dict {name of b: name of a, or a function of a's parameters}, or by one
    function from the dict of a's parameters to that of b's. Differentiable, so that gradients go back through it."""

    def __init__(self, a, b, given):
        self.names_a = [n for n, _ in a.named_parameters()]
        self.shapes_b = {n: p.shape for n, p in b.named_parameters()}
        self.function = given if callable(given) else None
        self.rules = {} if given == "names" or self.function else dict(given)
        for name in self.rules:
            if name not in self.shapes_b:
                raise Unmatched(f"b has no parameter {name}, which the map names")
        if self.function is None:
            self._check_names()
        #: b's parameters that are one of a's, entry by entry: {name of a: name of b}
        self.plain = {} if self.function else {self._source(n): n for n in self.shapes_b if self._source(n)}

    def _source(self, name):
        rule = self.rules.get(name, name)
        return rule if isinstance(rule, str) else None

    def _check_names(self):
        for name in self.shapes_b:
            source = self._source(name)
            if source is not None and source not in self.names_a:
                raise Unmatched(f"a has no parameter {source}, which {name} of b follows from")
        if any(callable(rule) for rule in self.rules.values()):
            return  # which may take any of a's
        used = {self._source(n) for n in self.shapes_b}
        for name in self.names_a:
            if name not in used:
                raise Unmatched(f"no parameter of b follows from {name} of a")

    def __call__(self, parameters):
        """b's parameters, of a's."""
        if self.function is not None:
            made = self.function(dict(parameters))
        else:
            made = {}
            for name in self.shapes_b:
                rule = self.rules.get(name, name)
                made[name] = rule(dict(parameters)) if callable(rule) else parameters[rule]
        for name, shape in self.shapes_b.items():
            if name not in made:
                raise Unmatched(f"the map makes no {name} of b")
            if made[name].shape != shape:
                raise Unmatched(f"the map makes {name} of b with shape {list(made[name].shape)}, it has {list(shape)}")
        return {name: made[name] for name in self.shapes_b}

    def pulled_back(self, parameters, gradients):
        """Gradients in b's parameters as gradients in a's, at these of a: {name: tensor}."""
        leaves = {n: p.detach().requires_grad_() for n, p in parameters.items()}
        made = self(leaves)
        pairs = [(made[n], g) for n, g in gradients.items() if g is not None and made[n].requires_grad]
        found = torch.autograd.grad(
            [m for m, _ in pairs], list(leaves.values()), [g for _, g in pairs], allow_unused=True
        )
        return {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(parameters.items(), found)}


def epsilon(dtype):
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def frozen_in_one(a, b, mapping):
    """A parameter of b that takes a gradient where a's, entry by entry the same, takes none, or the other way; None where there is
    none."""
    p, q = dict(a.named_parameters()), dict(b.named_parameters())
    return next((m for n, m in mapping.plain.items() if p[n].requires_grad != q[m].requires_grad), None)


def not_carried(a, b, mapping):
    """(name, deviation, bound) of a parameter of b that is not what the map makes of a's; None where there is none. What b has
    as a has it is equal; what is computed may be off by 64 eps of the coarser dtype."""
    own = {n: p.detach() for n, p in a.named_parameters()}
    made = mapping({n: p.double() for n, p in own.items()})
    same = set(mapping.plain.values())
    for name, p in b.named_parameters():
        coarser = max([epsilon(p.dtype), *(epsilon(q.dtype) for q in own.values())])
        rounded = made[name].to(p.dtype).double() if name in same else made[name]
        d = _isonorm.deviation(ours(p.double()), ours(rounded))
        bound = 0.0 if name in same else 64 * coarser
        if not d <= bound:
            return name, d, bound
    return None
