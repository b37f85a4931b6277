"""The map from the first module's parameters to the second's."""

import torch

from ._calls import before
from ._locate import off
from ._models import converted, made_in, real, spoken


def listed(names, most=8):
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def pulled_back(leaves, made, gradients):
    """Converts gradients of a map's results to gradients of its leaves: {name: tensor}. None counts as 0."""
    pairs = [(made[n], g) for n, g in gradients.items() if g is not None and made[n].requires_grad]
    found = [None] * len(leaves)
    if pairs:
        tensors, given = zip(*pairs)
        found = torch.autograd.grad(tensors, list(leaves.values()), given, allow_unused=True)
    return {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(leaves.items(), found)}


def follows(t, leaves):
    """True if a gradient of the tensor reaches one of the leaves."""
    own = {id(leaf) for leaf in leaves.values()}
    return id(t) in own or any(id(getattr(node, "variable", None)) in own for node in before([t.grad_fn], ()))


class Map:
    """b's parameters as functions of a's: by name, by a dict {name of b: name of a, or a function of a's parameters}, or by one
    function from the dict of a's parameters to that of b's. Differentiable, so that gradients go back through it."""

    def __init__(self, a, b, given):
        self.names_a = [n for n, _ in a.named_parameters()]
        self.shapes_b = {n: p.shape for n, p in b.named_parameters()}
        self.function = given if callable(given) else None
        self.rules = {} if given == "names" or self.function else dict(given)
        if self.function is None:
            self._check_names()
        #: parameters of b that equal a parameter of a entry by entry: {name in a: name in b}
        self.plain = {} if self.function else {self._source(n): n for n in self.shapes_b if self._source(n)}
        #: modules with such parameters: {name in a: name in b}
        self.modules = {n.rpartition(".")[0]: m.rpartition(".")[0] for n, m in self.plain.items()}

    def _source(self, name):
        rule = self.rules.get(name, name)
        return rule if isinstance(rule, str) else None

    def _check_names(self):
        """Raises ValueError if a parameter of b depends on no parameter of a, or a parameter of a is not used."""
        unknown = [n for n in self.rules if n not in self.shapes_b]
        if unknown:
            raise ValueError(f"compare: map= names {listed(unknown)}, which b does not have as a parameter; b has {listed(self.shapes_b)}")
        sources = [rule for rule in self.rules.values() if isinstance(rule, str) and rule not in self.names_a]
        if sources:
            raise ValueError(f"compare: map= takes {listed(sources)}, which a does not have as a parameter; a has {listed(self.names_a)}")
        without = [n for n in self.shapes_b if self._source(n) not in (None, *self.names_a)]
        used = {self._source(n) for n in self.shapes_b}
        takes_any = any(callable(rule) for rule in self.rules.values())
        unused = [] if takes_any else [n for n in self.names_a if n not in used]
        if without or unused:
            raise ValueError(
                f"compare: the parameters of a and b do not match; of a alone: {listed(unused)}; of b alone: {listed(without)}; "
                "map= says how b's follow from a's: a dict {name in b: name in a}, or a function of a's, which may leave some out"
            )

    def __call__(self, parameters):
        """b's parameters, of a's. Raises ValueError if some are missing, or have other shapes."""
        dtype = next((p.dtype.to_real() for p in parameters.values() if p.is_floating_point() or p.is_complex()), torch.float64)
        with made_in(dtype):
            if self.function is not None:
                made = self.function(dict(parameters))
            else:
                made = {}
                for name in self.shapes_b:
                    rule = self.rules.get(name, name)
                    made[name] = rule(dict(parameters)) if callable(rule) else parameters[rule]
        missing = [n for n in self.shapes_b if n not in made]
        if missing:
            raise ValueError(f"compare: the map makes no {listed(missing)} of b; it makes {listed(made)}")
        unknown = [n for n in made if n not in self.shapes_b and n not in self.names_a]
        if unknown:
            raise ValueError(f"compare: the map makes {listed(unknown)}, which b does not have as a parameter; b has {listed(self.shapes_b)}")
        for name, shape in self.shapes_b.items():
            if made[name].shape != shape:
                raise ValueError(
                    f"compare: the map makes {name} of b with shape {list(made[name].shape)}, it has {list(shape)}"
                )
        return {name: converted(made[name], spoken(dtype)) for name in self.shapes_b}

    def check_gradients(self, a):
        """Raises ValueError if the map's results depend on a's parameters, but no gradient reaches them."""
        parameters = {n: converted(p.detach(), "f64") for n, p in a.named_parameters()}
        leaves = {n: p.clone().requires_grad_(p.is_floating_point() or p.is_complex()) for n, p in parameters.items()}
        constant = [n for n, t in self(leaves).items() if not follows(t, leaves)]
        if not constant:
            return
        reached = self.reached(parameters, {n: torch.ones_like(real(p), dtype=torch.uint8) for n, p in parameters.items()})
        cut = [n for n in constant if reached[n].any()]
        if cut:
            raise ValueError(f"compare: no gradient goes back from {listed(cut)} through the map: it must not detach (.data, deepcopy)")
        if len(constant) == len(self.shapes_b) and parameters:
            raise ValueError("compare: nothing that the map makes follows from the dict of a's parameters that it is given")

    def pulled_back(self, parameters, gradients):
        """Gradients in b's parameters as gradients in a's, at these of a: {name: tensor}."""
        leaves = {n: p.detach().requires_grad_() for n, p in parameters.items()}
        return pulled_back(leaves, self(leaves), gradients)

    def in_b(self, name):
        """The name in b of a buffer or parameter of a: the name of a buffer's module follows from the module's parameters."""
        if name in self.plain:
            return self.plain[name]
        module, _, own = name.rpartition(".")
        return f"{self.modules.get(module, module)}.{own}".lstrip(".")

    def reached(self, parameters, marks):
        """{name in b: u8}: 1 for the entries that depend on an entry of a's parameters that has a mark."""

        def moved(p, marked):
            t = real(p) + marked.to(p.device) * (real(p).abs() + 1)
            return torch.view_as_complex(t) if p.is_complex() else t

        made, other = self(parameters), self({n: moved(p, marks[n]) for n, p in parameters.items()})
        return {n: (real(made[n]) != real(other[n])).to(torch.uint8) for n in made}


def epsilon(dtype):
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def frozen_in_one(a, b, mapping):
    """A parameter of b that takes a gradient where a's, entry by entry the same, takes none, or the other way; None where there is
    none."""
    p, q = dict(a.named_parameters()), dict(b.named_parameters())
    return next((m for n, m in mapping.plain.items() if p[n].requires_grad != q[m].requires_grad), None)


def not_carried(a, b, mapping):
    """(name, deviation, bound, dtype in b, dtype in a) of a parameter of b that is not what the map makes of a's; None if there is
    none. What b has as a has it is equal, or rounded to f32; what is computed may be off by 64 eps of the coarser dtype, but not
    of f16 and bf16."""
    own = {n: p.detach() for n, p in a.named_parameters()}
    made = mapping({n: converted(p, "f64") for n, p in own.items()})
    of_a = {m: own[n].dtype for n, m in mapping.plain.items()}
    dtypes_of_a = {p.dtype for p in own.values()}
    for name, p in b.named_parameters():
        coarser = max([epsilon(p.dtype), *map(epsilon, dtypes_of_a)])
        bound = 64 * min(coarser, epsilon(torch.float32))
        expected = made[name]
        if name in of_a:
            bound = 0.0
            if p.dtype in (torch.float32, torch.complex64):
                expected = converted(converted(expected, "f32"), "f64")
        d = off(real(converted(p, "f64")), real(expected))
        if not d <= bound:
            return name, d, bound, p.dtype, of_a.get(name) or min(dtypes_of_a, key=epsilon)
    return None
