"""compare(): are two modules of torch one function, and do they train alike?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from . import _isonorm
from ._result import Difference, NotFinite, Result, Undecided, Unmatched

if TYPE_CHECKING:
    import torch

    from ._recipe import Parameters

    Tensors = dict[str, torch.Tensor]  # by name
    T = TypeVar("T")
    OneOrTwo = Union[T, tuple[Optional[T], Optional[T]], None]  # for both, or (for a, for b)



def compare(
    a: torch.nn.Module,
    b: torch.nn.Module,
    *,
    batches: Iterable[Any] | Callable[[int], Any],
    loss: Callable[[Any, Any], torch.Tensor] | None = None,
    map: str | Mapping[str, str | Callable[[Tensors], torch.Tensor]] | Callable[[Tensors], Tensors] | None = "names",
    optimizer: OneOrTwo[Callable[[Parameters], torch.optim.Optimizer]] = None,
    schedule: OneOrTwo[Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]] = None,
    accumulate: OneOrTwo[int] = None,
    clip: OneOrTwo[float | Callable[[Parameters], Any]] = None,
    steps: int = 20,
    points: int = 5,
    controls: int = 4,
    seed: int = 1,
    dtype: str | None = None,
    carry: bool = False,
    progress: Callable[[dict], Any] | None = None,
) -> Result:
    """Whether two torch.nn.Modules are one function and train alike, as far as rounding lets it be seen.

    Copies of both run in `dtype` ("f64" or "f32"; None: f64, and again in f32 if they differ there because a module computes, or a
    table is stored, in f32); a and b stay as they are. Outputs, loss, gradients of parameters (in a's coordinates) and of floating
    inputs are compared at `points` points: a's parameters as they stand, then drawn anew. The bound of each tensor is what one ulp
    in a's parameters does to it (`controls` times tried): 30 times that, and 64 eps. To show that it can see, the comparison then
    multiplies every other entry of single parameters of a by 1 + 1e-5 (f32: 1 + 1e-2).

    batches:   an iterable of batches, or a function of the number of a point or step, from 0. Of an iterable max(points, steps)
               batches are read (without an optimizer: points), so it may be endless; after its last batch it begins again. A
               batch holds the inputs of the modules (a tensor, a tuple of arguments, a mapping of named ones such as a dict or
               a BatchEncoding); with a loss it is a pair (inputs, targets).
    loss:      a function of output and targets to a number; None: half the mean squared distance
               of all outputs from random numbers.
    map:       how b's parameters follow from a's. "names": they are called the same. A dict {name in b: name in a, or a
               function of the dict of a's parameters}, where the rest is called the same. A function of the dict of a's
               parameters to the dict of b's. None: b keeps its own, and only outputs and gradients of inputs are compared.
    optimizer: a function of a list of parameters to an optimizer of torch: then both train `steps` steps, and loss, gradients
               and weights are compared at each. The list's attribute `model` is the module under training, a copy of a or b: it
               has the names.
    schedule:  a function of the optimizer to a schedule of torch.optim.lr_scheduler, which moves on after each step.
    accumulate: a number of micro-batches. In training each batch is cut into so many equal parts along the first dimension of its
               tensors; loss and gradients are the mean over the parts.
    clip:      the largest norm of all gradients together (torch.nn.utils.clip_grad_norm_), or a function of the list of parameters
               that changes their gradients. Gradients are compared before, weights after.
               Of these four each may be a pair (for a, for b), such as optimizer=(for_a, for_b). With a pair, b may be a itself.
    carry:     b's own parameters need not be what the map makes of a's.
    progress:  a function that gets a dict after every point and step: "phase" ("points", "negative controls", "training"), "step",
               "steps". What it raises ends the comparison.

    Returns a Result; bool(result) is whether the two are equivalent. Modules may change their inputs in place. Raises ValueError,
    in one line, for arguments of another kind; if a comparison makes no sense (a is b, no batches, outputs of other shapes, a loss
    of a that is not finite, parameters with hooks or in one memory); and if a module, map, loss, optimizer or iterable that was
    given raises something, which it names.
    """
    from . import _batches, _causes, _coarse, _given, _locate, _maps, _memory, _models, _points, _recipe, _rounding, _training, _update_causes

    _given.check_module("a", a), _given.check_module("b", b)
    counts = {"points": points, "controls": controls, "steps": steps}
    _given.check_options(batches, loss, map, progress, dtype, seed, counts)
    may_change, dtype = dtype is None, dtype or "f64"
    train = _recipe.recipes(dtype, loss, optimizer=optimizer, schedule=schedule, accumulate=accumulate, clip=clip)
    if a is b and (train is None or train[0].options() == train[1].options()):
        raise ValueError("compare: a module was given twice, as a and as b")
    if train is not None and map is None:
        raise ValueError("compare: training needs a map, which says how b's parameters follow from a's")

    def in_f32(why, deviation=None):
        """The Result of the same comparison in f32."""
        training = {"optimizer": optimizer, "schedule": schedule, "accumulate": accumulate, "clip": clip, "steps": steps}
        more = {"loss": loss, "map": map, "points": points, "controls": controls, "seed": seed, "carry": carry}
        found = compare(a, b, batches=read, dtype="f32", progress=progress, **training, **more)
        off = "" if deviation is None else f"; in f64 they are off by {deviation:.1e}"
        return replace(found, why_f32=f"{why}, so both were compared in f32{off}")

    def told(phase, of):
        return lambda step: progress({"phase": phase, "step": step, "steps": of}) if progress else None

    def result(verdict, reason, **more):
        return Result(verdict=verdict, reason=reason, dtype=dtype, batches=str(read), **more)

    def measured(of):
        return {"deviation": of.deviation, "control": of.control, "tolerance": _isonorm.bound(of.control, dtype)}

    def different(point, reason, first, **numbers):
        """The Result at a point at which the two differ; first: as Comparison.first_difference."""
        why = _coarse.explained_by_f32(at, point) if may_change else ""
        if why:
            return in_f32(why, first["deviation"])
        located = _locate.Located(at, point, first)
        causes = _causes.Causes(located)
        first = replace(located.first, measured="with a's module there the outputs agree") if causes.replaced() else located.first
        return result("different", reason, points=point, first_difference=first, likely_cause=causes.named(), **numbers)

    read = batches.in_dtype(dtype) if isinstance(batches, _batches.Batches) else _batches.Batches(batches, dtype)
    try:
        mapping = None if map is None else _maps.Map(a, b, _given.naming_map(map, dtype))
        if mapping is not None and not carry:
            wrong = _maps.not_carried(a, b, mapping)
            if wrong is not None:
                name, deviation, bound, in_b, in_a = wrong
                dtypes = "" if in_a == in_b else f": it is {_models.spoken(in_b)}, a is {_models.spoken(in_a)}"
                return result(
                    "different",
                    f"{name} of b is not what the map makes of a's parameters{dtypes} (carry=True sets it)",
                    points=0,
                    first_difference=Difference("parameter", name, name, deviation, bound),
                    likely_cause="other values of parameters",
                )
        if mapping is not None:
            mapping.check_gradients(a)
        if mapping is not None and (name := _maps.frozen_in_one(a, b, mapping)):
            return result("different", f"{name} takes a gradient in one module alone", points=0)
        at = _points.Points(
            _models.copied(a, dtype),
            _models.copied(b, dtype),
            mapping,
            _models.Loss(loss, dtype),
            read,
            controls,
            seed,
            dtype,
            {id(p): f"{name} of {who}" for who, module in (("a", a), ("b", b)) for name, p in module.named_parameters()},
        )
        _memory.say(at.a, controls, train is not None)
        found, point = at.compare(points, told("points", points))
    except Unmatched as e:
        return different(e.point, str(e), e.first)
    except NotFinite as e:  # such as a mask of f64's lowest number, which a module casts to f32: -inf
        if not may_change:
            raise
        return in_f32(str(e).removeprefix("compare: ").replace(" at ", " in f64 at "))
    except Undecided as e:
        return result("undecided", str(e).removeprefix("compare: "), points=0)
    if point is not None:
        return different(point, found.reason, found.first_difference, **measured(found))
    verdict, reason, trained = found.verdict, found.reason, None
    if dtype == "f64" and any(at.autocasts):
        x, y = at.autocasts
        alone = " and ".join(f"{of} computes under autocast to {to}" for of, to in (("a", x), ("b", y)) if to)
        if x != y and may_change:
            return in_f32(f"{alone}, which casts nothing in f64", found.deviation)
        at.not_compared["autocast"] = 'it casts nothing in f64; dtype="f32" compares with it'
    probes = at.probes()
    if verdict == "equivalent" and probes and not any(p.detected for p in probes):
        verdict, reason = "undecided", f"it detects none of {len(probes)} parameters that were changed"
    if train is not None and verdict == "equivalent":
        trained = _training.train_together(at, train, steps, told)
        verdict = trained.verdict
        at_points = f"at {points} point{'' if points == 1 else 's'} the two agree" if verdict == "different" else reason
        reason = f"{at_points}; in training {trained.reason}"
        if verdict == "different" and may_change:
            coarse = _coarse.Coarse(at, 1)
            if coarse.is_f32:
                with _rounding.WithoutCasts(dtype):
                    again = _training.train_together(at, train, steps, told)
                if again.verdict == "equivalent":
                    return in_f32(coarse.sentence, trained.deviation)
    last = trained or found
    first, cause = None, None
    if trained is not None and verdict == "different":
        place = trained.first_difference
        name = place["tensor"] or "the loss"
        what = f"{place['quantity']} at step {place['step']}"
        first = Difference(what, name, name, place["deviation"], place["bound"], place["as_a_whole"])
        cause = _update_causes.named(at, train, {**place, "dtype": dtype})
    return result(
        verdict,
        reason,
        points=points,
        not_compared=tuple(f"{name} ({why})" for name, why in at.not_compared.items()),
        steps=steps if trained else 0,
        first_difference=first,
        likely_cause=cause,
        detectable=found.detectable,
        probes=probes,
        **measured(last),
    )


def assert_equivalent(a: torch.nn.Module, b: torch.nn.Module, **options: Any) -> Result:
    """Raises AssertionError with the text of compare(a, b, **options) unless the two are equivalent; gives the Result."""
    __tracebackhide__ = True
    found = compare(a, b, **options)
    if not found:
        raise AssertionError(str(found))
    return found
