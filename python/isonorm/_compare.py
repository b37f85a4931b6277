"""compare(): are two modules of torch one function, and do they train alike?"""

from dataclasses import replace

from . import _isonorm
from ._result import Difference, Power, Result, Undecided, Unmatched

VERDICTS = {"same": "equivalent", "different": "different", "undecided": "undecided"}


def compare(
    a,
    b,
    *,
    batches,
    loss=None,
    map="names",
    optimizer=None,
    steps=20,
    points=5,
    controls=4,
    seed=1,
    dtype=None,
    carry=False,
    progress=None,
) -> Result:
    """Whether two torch.nn.Modules are one function and train alike, as far as rounding lets it be seen.

    Copies of both run in `dtype` ("f64" or "f32"; None: f64, and again in f32 if they differ there because a module computes, or a
    table is stored, in f32); a and b stay as they are. Outputs, loss, gradients of parameters (in a's
    coordinates) and of floating inputs are compared at `points` points: a's parameters as they stand, then drawn anew. The bound
    of each tensor is what one ulp in a's parameters does to it (`controls` times tried): 30 times that, and 64 eps. To show
    that it can see, the comparison then multiplies every other entry of single parameters of a by 1 + 1e-5 (f32: 1 + 1e-2).

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
               and weights are compared at each.
    carry:     b's own parameters need not be what the map makes of a's.
    progress:  a function that gets a dict after every point and step: "phase" ("points", "wrong trainings", "training"), "step",
               "steps". What it raises ends the comparison.

    Returns a Result; bool(result) is whether the two are equivalent. Modules may change their inputs in place. Raises ValueError
    if a comparison makes no sense (a is b, no batches, outputs of other shapes, a loss of a that is not finite, parameters with
    hooks or in one memory), and if a module or the loss raises something, which it names (in training: what they raise).
    """
    from . import _coarse, _locate, _maps, _models, _points, _rounding, _training

    if a is b:
        raise ValueError("compare: a module was given twice, as a and as b")
    if points < 1 or controls < 1 or steps < 1:
        raise ValueError(f"compare: {points} points, {controls} controls and {steps} steps, expected at least 1 of each")
    if optimizer is not None and map is None:
        raise ValueError("compare: training needs a map, which says how b's parameters follow from a's")
    if dtype not in (None, *_models.TORCH_DTYPES):
        raise ValueError(f"compare: dtype is {dtype!r}, expected 'f64' or 'f32'")
    may_change, dtype = dtype is None, dtype or "f64"

    def in_f32(why, deviation):
        """The Result of the same comparison in f32."""
        more = {"loss": loss, "map": map, "optimizer": optimizer, "steps": steps, "points": points, "controls": controls}
        found = compare(a, b, batches=read, dtype="f32", seed=seed, carry=carry, progress=progress, **more)
        return replace(found, why_f32=f"{why}, so both were compared in f32; in f64 they are off by {deviation:.1e}")

    def told(phase, of):
        return lambda step: progress({"phase": phase, "step": step, "steps": of}) if progress else None

    def result(verdict, reason, **more):
        return Result(verdict=verdict, reason=reason, dtype=dtype, batches=str(read), **more)

    read = batches.in_dtype(dtype) if isinstance(batches, _models.Batches) else _models.Batches(batches, dtype)
    try:
        mapping = None if map is None else _maps.Map(a, b, map)
        if mapping is not None and not carry:
            wrong = _maps.not_carried(a, b, mapping)
            if wrong is not None:
                name, deviation, bound, in_b, in_a = wrong
                dtypes = "" if in_a == in_b else f": it is {_models.spoken(in_b)}, a is {_models.spoken(in_a)}"
                return result(
                    "different",
                    f"{name} of b is not what the map makes of a's parameters{dtypes} (carry=True sets it)",
                    points=0,
                    first=Difference("parameter", name, name, deviation, bound),
                    cause="other values of parameters",
                )
        if mapping is not None and (name := _maps.frozen_in_one(a, b, mapping)):
            return result("different", f"{name} takes a gradient in one of the two alone", points=0)
        at = _points.Points(
            _models.copied(a, dtype),
            _models.copied(b, dtype),
            mapping,
            _models.Loss(loss, dtype),
            read,
            controls,
            seed,
            dtype,
        )
        found, point = at.compare(points, told("points", points))
    except Unmatched as e:
        return result("different", str(e), points=0)
    except Undecided as e:
        return result("undecided", str(e), points=0)

    def measured(of):
        return {"deviation": of.deviation, "control": of.control, "tolerance": _isonorm.bound(of.control, dtype)}

    if point is not None:
        why = _coarse.explained_by_f32(at, point) if may_change else ""
        if why:
            return in_f32(why, found.deviation)
        located = _locate.Located(at, point, found)
        return result(
            "different", found.reason, points=point, first=located.first, cause=located.cause(), **measured(found)
        )
    verdict, reason, trained = VERDICTS[found.verdict], found.reason, None
    power = Power(at.probes().probes, found.resolution)
    if verdict == "equivalent" and power.probes and not power.seen:
        verdict, reason = "undecided", f"it would have seen none of {len(power.probes)} parameters that were changed"
    if optimizer is not None and verdict == "equivalent":
        trained = _training.train_together(at, optimizer, steps, told)
        verdict, reason = VERDICTS[trained.verdict], f"{reason}; in training {trained.reason}"
        if verdict == "different" and may_change:
            coarse = _coarse.Coarse(at, 1)
            if coarse.is_f32:
                with _rounding.WithoutCasts(dtype):
                    again = _training.train_together(at, optimizer, steps, told)
                if VERDICTS[again.verdict] == "equivalent":
                    return in_f32(coarse.sentence, trained.deviation)
    last = trained or found
    first, cause = None, None
    if trained is not None and verdict == "different":
        place = trained.first
        name = place["tensor"] or "the loss"
        first = Difference(
            f"{place['quantity']} at step {place['at']}", name, name, place["deviation"], _isonorm.bound(last.control, dtype)
        )
        if place["quantity"] == "weights":
            cause = f"the update: at step {place['at']} the gradients agree and the updated weights do not"
    return result(
        verdict,
        reason,
        points=points,
        not_compared=tuple(f"{name} ({why})" for name, why in at.not_compared.items()),
        steps=steps if trained else 0,
        first=first,
        cause=cause,
        power=power,
        **measured(last),
    )


def assert_equivalent(a, b, **options) -> Result:
    """Raises AssertionError with the text of compare(a, b, **options) unless the two are equivalent; gives the Result."""
    __tracebackhide__ = True
    found = compare(a, b, **options)
    if not found:
        raise AssertionError(str(found))
    return found
