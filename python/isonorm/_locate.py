"""Where two modules first differ, in order of execution, and what shows of the cause."""

import torch

from . import _isonorm
from ._coarse import Coarse
from ._models import PLAIN, hooked, in_dtype, measured, ours
from ._result import Difference

ADVICE = '; dtype="f32" compares them in f32'


class Calls:
    """While it lasts, what each leaf module of a model is given, gives, and gets back as gradient, in `dtype`."""

    def __init__(self, model, dtype):
        self.model, self.dtype, self.calls, self.handles, self.given = model, dtype, [], [], []

    def __enter__(self):
        for name, module in hooked(self.model):
            if not list(module.children()):
                self.handles.append(module.register_forward_pre_hook(self.before))
                self.handles.append(module.register_forward_hook(self.after(name)))
        return self

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()

    def before(self, module, inputs):
        self.given = in_dtype(measured(inputs), self.dtype)  # now: the module may change them in place

    def after(self, name):
        def note(module, inputs, output):
            outputs = measured(output)
            if not outputs:
                return
            call = Call(name, module, self.given, in_dtype(outputs[0], self.dtype))
            if outputs[0].requires_grad:
                outputs[0].register_hook(lambda g: setattr(call, "gradient", in_dtype(g, self.dtype)))
            self.calls.append(call)

        return note


class Call:
    def __init__(self, name, module, inputs, output):
        self.name, self.module, self.inputs, self.output, self.gradient = name, module, inputs, output, None


def called(model, dtype, run):
    with Calls(model, dtype) as calls:
        ran = run()
    return calls.calls, ran


def matched(a, b):
    """Pairs of calls, in a's order: by name where both have the same names, else in order; of outputs of one shape."""
    if {c.name for c in a} == {c.name for c in b}:
        left = list(b)
        pairs = []
        for call in a:
            partner = next((c for c in left if c.name == call.name), None)
            if partner is not None:
                left.remove(partner)
                pairs.append((call, partner))
    else:
        pairs = list(zip(a, b))
    return [(x, y) for x, y in pairs if x.output.shape == y.output.shape]


def off(x, reference):
    both = x.isfinite() & reference.isfinite()
    same = x.isnan() & reference.isnan() | (x == reference)
    if not both.all():
        x, reference = (torch.where(both | ~same, t, 0) for t in (x, reference))
    d = _isonorm.deviation(ours(x), ours(reference))
    return float("inf") if d != d else d


class Located:
    """Of a point at which the two differ."""

    def __init__(self, points, point, found):
        self.points, self.point, self.found = points, point, found
        self.batch, self.parameters = points.batches(point - 1), points.parameters(point)
        a, ran = called(points.a, points.dtype, lambda: points.of_a(self.parameters, self.batch))
        b, other = called(points.b, points.dtype, lambda: points.of_b(self.parameters, self.batch))
        self.gradients = dict(zip(points.names(self.batch), zip(ran.gradients, other.gradients)))
        self.controls = [
            called(points.a, points.dtype, lambda: points.control(self.parameters, self.batch, c))[0]
            for c in range(1, points.controls + 1)
        ]
        self.index = {id(call): i for i, call in enumerate(a)}
        self.pairs = matched(a, b)
        self.pair, self.first = self.locate()

    def limit(self, call, of):
        """The bound of a call of a, by what its controls do there."""
        worst = 0.0
        for calls in self.controls:
            moved, own = of(calls[self.index[id(call)]]), of(call)
            worst = max(worst, off(moved, own))
        return _isonorm.bound(worst, self.points.dtype)

    def locate(self):
        passes = (
            ("output", self.pairs, lambda c: c.output),
            ("gradient of the output", self.pairs[::-1], lambda c: c.gradient),
        )
        for what, pairs, of in passes:
            for x, y in pairs:
                if of(x) is None or of(y) is None:
                    continue
                deviation, limit = off(of(y), of(x)), self.limit(x, of)
                if deviation > limit:
                    return (x, y), Difference(what, x.name or "a itself", y.name or "b itself", deviation, limit)
        first = self.found.first
        bound = _isonorm.bound(self.found.control, self.points.dtype)
        name = first["tensor"] or "the loss"
        return None, Difference(first["quantity"], name, name, first["deviation"], bound)

    def cause(self):
        first = [call.name for call in self.pair] if self.pair else []
        coarse = Coarse(self.points, self.point, *first)
        if coarse.sentence and coarse.agree_without_casts():
            return f"{coarse.sentence}, and without that the two agree{ADVICE if coarse.is_f32 else ''}"
        in_f32 = coarse.is_f32 and coarse.agree_in_f32()
        known = self.other_class() or self.other_options() or self.in_training_alone() or self.known_mistake()
        if in_f32 and (known is None or self.pair and type(self.pair[0].module) is not type(self.pair[1].module)):
            return (f"{known}; " if known else "") + f"{coarse.sentence}, and in f32 the two agree{ADVICE}"
        return known

    def other_class(self):
        if self.pair is None:
            return None
        x, y = self.pair
        if type(x.module) is not type(y.module) or x.module.extra_repr() != y.module.extra_repr():
            return f"{x.name or 'a'} is {spoken(x.module)}, {y.name or 'b'} of b is {spoken(y.module)}"
        return None

    def other_options(self):
        """Modules of one class, in order, that hold different numbers or words."""
        for (name, x), (other, y) in zip(self.points.a.named_modules(), self.points.b.named_modules()):
            if type(x) is not type(y):
                return None
            for key, value in vars(x).items():
                if isinstance(value, PLAIN) and not key.startswith("_") and vars(y).get(key, value) != value:
                    return f"{key} of {name or 'a'} is {value!r}, of {other or 'b'} in b {vars(y)[key]!r}"
        return None

    def in_training_alone(self):
        a, b = self.points.a, self.points.b  # copies, which run no more
        if not any(m.training for model in (a, b) for m in model.modules()):
            return None
        a.eval(), b.eval()
        ran = self.points.of_a(self.parameters, self.batch), self.points.of_b(self.parameters, self.batch)
        pairs = [*zip(ran[0].outputs, ran[1].outputs), *zip(ran[0].gradients, ran[1].gradients)]
        agree = all(off(y, x) <= self.first.bound for x, y in pairs)
        return "dropout, or another thing that acts in training alone: in eval() the two agree" if agree else None

    def known_mistake(self):
        """By arithmetic on what was recorded (equivalence/explain)."""
        tensors = {}
        for name, p in self.parameters.items():
            tensors[name] = (ours(p), ours(p))
        for name, (x, y) in self.gradients.items():
            tensors[f"{name}.grad"] = (ours(x), ours(y))
        for x, y in self.pairs:
            if x.inputs and y.inputs and x.inputs[0].shape == y.inputs[0].shape:
                tensors[f"{x.name}.input"] = (ours(x.inputs[0]), ours(y.inputs[0]))
            tensors[f"{x.name}.output"] = (ours(x.output), ours(y.output))
            if x.gradient is not None and y.gradient is not None:
                tensors[f"{x.name}.output.grad"] = (ours(x.gradient), ours(y.gradient))
        ends = {"output": ".output", "gradient of the output": ".output.grad", "gradient": ".grad"}
        if self.first.what not in ends:
            return None
        return (
            _isonorm.cause(self.first.a + ends[self.first.what], self.first.bound, self.points.dtype, tensors) or None
        )


def spoken(module):
    return f"{type(module).__name__}({module.extra_repr()})"
