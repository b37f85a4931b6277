"""Why two modules differ at a point. A cause is named if it explains the tensor that differs by arithmetic, or if the two agree as
soon as it is removed."""

import contextlib
import re
import types

import torch
from torch.func import functional_call

from . import _isonorm
from ._coarse import Coarse, agree
from ._locate import Located, off
from ._models import PLAIN, ours

ADVICE = '; dtype="f32" compares them in f32'
MOST = 8  # maximum number of pairs of modules with different options that are tried
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)  # such as torch.relu; not modules


class Causes:
    def __init__(self, located):
        self.at, self.points = located, located.points

    def named(self):
        """One sentence; None if no cause is found."""
        if not self.repeats():
            return "b is not repeatable: run again with the same parameters, inputs and seed, it gives something else"
        first = [call.name for call in self.at.pair] if self.at.pair else []
        coarse = Coarse(self.points, self.at.point, *first)
        if coarse.sentence and coarse.agree_without_casts():
            return f"{coarse.sentence}, and without that the two agree{ADVICE if coarse.is_f32 else ''}"
        tested = self.options() or self.buffers() or self.known_mistake() or self.in_training_alone()
        in_f32 = coarse.is_f32 and not tested and coarse.agree_in_f32()
        known = tested or self.classes()
        return (f"{known}; " if known else "") + f"{coarse.sentence}, and in f32 the two agree{ADVICE}" if in_f32 else known

    def agree(self):
        return agree(self.points, self.at.point)

    def repeats(self):
        """Whether b gives the same outputs twice."""
        once, again = (self.points.of_b(self.at.parameters, self.at.batch).outputs for _ in range(2))
        return all(off(y, x) <= _isonorm.bound(0.0, self.points.dtype) for x, y in zip(once, again))

    def options(self):
        """Numbers and words that partners hold otherwise, and with which of a's the two agree."""
        modules = dict(self.points.a.named_modules()), dict(self.points.b.named_modules())
        first = self.at.pair[0].name if self.at.pair else None
        pairs = sorted(self.at.partners.items(), key=lambda names: names[0] != first)
        differing = []
        for name, other in pairs:
            x, y = modules[0][name], modules[1][other]
            keys = [k for k in vars(x) if not k.startswith("_") and k in vars(y) and differ(vars(x)[k], vars(y)[k])]
            differing += [(name or "a", other or "b", x, y, keys)] if keys else []
        single = [[(*names, [k])] for *names, keys in differing if len(keys) > 1 for k in keys]
        trials = [[d] for d in differing[:MOST]] + ([differing] if len(differing) > 1 else []) + single[:MOST]
        for trial in trials:
            if not self.agree_with(trial):
                continue
            name, other, x, y, keys = trial[0]
            if len(trial) == 1:
                keys = next(([k] for k in keys if self.agree_with([(name, other, x, y, [k])])), keys)
            said = " and ".join(f"{k} of {name} is {shown(vars(x)[k])}, of {other} in b {shown(vars(y)[k])}" for k in keys)
            return said + (f" ({len(trial)} modules)" if len(trial) > 1 else "") + "; with a's the two agree"
        return None

    def agree_with(self, trial):
        """Whether the two agree if b's modules have these options of a's."""
        before = [(y, k, vars(y)[k]) for _, _, _, y, keys in trial for k in keys]
        for _, _, x, y, keys in trial:
            for k in keys:
                setattr(y, k, vars(x)[k])
        try:
            return self.agree()
        finally:
            for y, k, value in before:
                setattr(y, k, value)

    def buffers(self):
        """Buffers of partners, such as a norm's statistics, that b holds with other values, if the two agree with a's."""
        of_b, in_b = dict(self.points.b.named_buffers()), self.points.mapping.in_b if self.points.mapping else str
        pairs = [(n, in_b(n), t, of_b.get(in_b(n))) for n, t in self.points.a.named_buffers()]
        other = [p for p in pairs if p[3] is not None and p[2].shape == p[3].shape and not torch.equal(p[2], p[3])]
        if not other:
            return None
        before = [y.clone() for *_, y in other]
        try:
            for _, _, x, y in other:
                y.copy_(x)
            if not self.agree():
                return None
        finally:
            for (*_, y), value in zip(other, before):
                y.copy_(value)
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        return f"b has other values of the buffer {other[0][1]}{more}; with a's the two agree"

    def in_training_alone(self):
        models = self.points.a, self.points.b
        modes = [(m, m.training) for model in models for m in model.modules()]
        if not any(training for _, training in modes):
            return None
        try:
            for model in models:
                model.eval()
            agree = self.agree()
        finally:
            for m, training in modes:
                m.training = training
        if not agree:
            return None
        acting = [
            f"{name or of} of {of} is {spoken(m)}"
            for of, model in zip("ab", models)
            for name, m in model.named_modules()
            if m.training and acts_in_training(m)
        ]
        such = f" ({acting[0]})" if acting else ""
        return f"a part that acts in training alone{such}: in eval() the two agree, and in train() they do not"

    def known_mistake(self):
        """By arithmetic on what was recorded (equivalence/explain). Fresh parameters, gains of 1 and biases of 0, do not tell a
        factor from an addend: at drawn ones the kind of mistake has to be the same."""
        said = self.explained()
        if not said or self.at.point > 1 or self.points.mapping is None:
            return said
        noted = _isonorm.Points(self.points.dtype, 1)
        try:
            self.points.compare_at(2, noted)
        except (RuntimeError, ValueError):
            return said
        if not noted.differs:
            return said
        again = Causes(Located(self.points, 2, noted.judgement().first_difference)).explained()
        return said if again and without_numbers(again) == without_numbers(said) else again

    def explained(self):
        tensors = {}
        for name, p in self.at.parameters.items():
            tensors[name] = (ours(p), ours(p))
        for name, (x, y) in self.at.gradients.items():
            tensors[f"{name}.grad"] = (ours(x), ours(y))
        for x, y in self.at.pairs:
            for end, of_x, of_y in (
                ("input", x.inputs, y.inputs),
                ("output", x.outputs, y.outputs),
                ("grad_input", came(x.input_gradients), came(y.input_gradients)),
                ("output.grad", came(x.gradients), came(y.gradients)),
            ):
                if of_x and of_y and of_x[0].shape == of_y[0].shape:
                    tensors[f"{x.name}.{end}"] = (ours(of_x[0]), ours(of_y[0]))
        first = self.at.first
        name = f"{self.at.pair[0].name}.{self.at.end}" if self.at.pair else first.tensor
        name = name if name in tensors else name.removeprefix(".")  # a parameter of a itself
        return arithmetic(name, first.bound, self.points.dtype, tensors)

    def classes(self):
        if not self.at.alone or self.at.end != "output":
            return None
        x, y = self.at.pair
        if type(x.module) is type(y.module) and x.module.extra_repr() == y.module.extra_repr():
            return None
        return f"{x.name or 'a'} is {spoken(x.module)}, {y.name or 'b'} of b is {spoken(y.module)}"

    def replaced(self):
        """True if the outputs agree after a's module, with its parameters, replaces b's module that differs."""
        if not self.at.alone or self.at.end != "output" or not self.at.pair[0].name:
            return False
        x, y = self.at.pair
        names = {n: f"{x.name}.{n}" for n, _ in x.module.named_parameters()}
        held = {n: self.at.parameters[of_a] for n, of_a in names.items() if of_a in self.at.parameters}

        def forward(*given, **named):
            buffers = {n: t.clone() for n, t in x.module.named_buffers()}
            return functional_call(x.module, {**held, **buffers}, given, named)

        with instead(y.module, forward):
            try:
                ran = self.points.of_b(self.at.parameters, self.at.batch)
            except ValueError:
                return False
        root = next(call for call in self.at.of_a if call.name == "")
        limits = [self.at.limit(root, lambda call, i=i: call.outputs[i]) for i in range(len(root.outputs))]
        return len(ran.outputs) == len(limits) and all(off(t, o) <= bound for t, o, bound in zip(ran.outputs, root.outputs, limits))


def arithmetic(name, bound, dtype, tensors):
    """The known mistake that explains the difference of this tensor; None if none does. tensors: {name: (of a, of b)}"""
    found = _isonorm.cause(name, bound, dtype, tensors)
    return re.sub(r"\b[AB]\b", lambda letter: letter[0].lower(), found) or None


def without_numbers(sentence):
    return re.sub(r"[-+]?\d[\d.e+-]*|, about.*", "", sentence)


def came(gradients):
    return [g for g in gradients.values() if g is not None]


@contextlib.contextmanager
def instead(module, forward):
    """While it lasts the module computes `forward`."""
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def acts_in_training(module):
    """Whether a module computes something else in training, as its class says; dropout with a probability of 0 does not."""
    probability = getattr(module, "p", getattr(module, "drop_prob", None))
    return re.search("Drop|BatchNorm|InstanceNorm", type(module).__name__) is not None and probability != 0


def differ(x, y):
    """Whether two options that can be compared are not the same; functions are known by their names."""
    return is_plain(x) and is_plain(y) and x != y and not (isinstance(x, FUNCTIONS) and shown(x) == shown(y))


def is_plain(value):
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (*PLAIN, *FUNCTIONS))


def shown(value):
    return getattr(value, "__name__", "a function") if isinstance(value, FUNCTIONS) else repr(value)


def spoken(module):
    return f"{type(module).__name__}({module.extra_repr()})"
