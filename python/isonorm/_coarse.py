"""Recognises differences from modules that compute in a coarser dtype, and from tables stored in one."""

import torch

from . import _isonorm
from ._models import copied, in_dtype
from ._points import Points
from ._rounding import CoarseResults, WithoutCasts, computing_coarsely


class Coarse:
    """Of a point: who computes in a coarser dtype there.

    sentence: "1 of a (LlamaRMSNorm) computes in f32"; empty if nobody does, or torch cannot tell.
    is_f32:   whether that is f32 in a comparison in f64.
    """

    def __init__(self, points, point, first_of_a=None, first_of_b=None):
        self.points, self.point = points, point
        self.sentence, self.is_f32 = "", False
        at = points.parameters(point), points.batches(point - 1)
        try:
            with CoarseResults(points.a, points.dtype) as a:
                points.of_a(*at)
            with CoarseResults(points.b, points.dtype) as b:
                points.of_b(*at)
        except (RuntimeError, ValueError):  # operations that do not support TorchDispatchMode
            return
        self.sentence, dtype = computing_coarsely([("a", a, first_of_a), ("b", b, first_of_b)])
        self.is_f32 = points.dtype == "f64" and dtype == torch.float32

    def agree_without_casts(self):
        with WithoutCasts(self.points.dtype):
            return agree(self.points, self.point)

    def agree_in_f32(self):
        p = self.points
        models = copied(p.a, "f32"), copied(p.b, "f32")
        batch = in_dtype(p.batches(self.point - 1), "f32")
        return agree(Points(*models, p.mapping, p.loss, lambda at: batch, p.controls, p.seed, "f32"), self.point)


def agree(points, point):
    """Whether a and b agree at a point; False if they raise."""
    noted = _isonorm.Points(points.dtype, 1)
    try:
        points.compare_at(point, noted)
    except (RuntimeError, ValueError):
        return False
    return not noted.differs


def explained_by_f32(points, point):
    """Why the difference of a comparison in f64 may be rounding to f32, to be compared in f32; empty if it is not.

    Either the two agree in f64 as soon as nobody casts; or one holds a table of f32 that the other does not hold, and in f32 they
    agree.
    """
    if points.dtype != "f64":
        return ""
    coarse = Coarse(points, point)
    if coarse.is_f32 and coarse.agree_without_casts():
        return coarse.sentence
    tables = of_f32_alone(points)
    return tables if tables and coarse.agree_in_f32() else ""


def of_f32_alone(points):
    """ "table of a is stored in f32", of tables that a or b holds and the other one does not; empty if there are none."""
    a, b = points.a, points.b
    alone = [f"{n} of {of}" for of, own, other in (("a", a, b), ("b", b, a)) for n in missing(tables_of_f32(own), tables(other))]
    if not alone:
        return ""
    return alone[0] + (f" and {len(alone) - 1} more are" if len(alone) > 1 else " is") + " stored in f32"


def missing(own, other):
    """Names of own tensors without an equal partner. None if a tensor of the same name has other numbers, beyond rounding."""
    missed = [n for n, t in own.items() if not any(t.shape == u.shape and torch.equal(t.double(), u.double()) for u in other.values())]
    near = 4 * torch.finfo(torch.float32).eps
    for n in missed:
        if n in other and not (own[n].shape == other[n].shape and torch.allclose(own[n].double(), other[n].double(), near, 0, True)):
            return []
    return missed


def tables(model):
    """{name: tensor} of floating buffers and attributes."""
    found = dict(model.named_buffers())
    for name, module in model.named_modules():
        found.update({f"{name}.{key}".lstrip("."): t for key, t in vars(module).items() if isinstance(t, torch.Tensor)})
    return {n: t for n, t in found.items() if t.is_floating_point()}


def tables_of_f32(model):
    """{name: tensor} of buffers and tensor attributes that have digits of f32, and none beyond."""
    return {
        n: t
        for n, t in tables(model).items()
        if torch.equal(t.double().nan_to_num(), t.float().double().nan_to_num())
        and not torch.equal(t.double().nan_to_num(), t.bfloat16().double().nan_to_num())
    }
