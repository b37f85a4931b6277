"""The result of a comparison. Knows no torch."""

import math
from dataclasses import asdict, dataclass
from typing import ClassVar, Optional


class Unmatched(ValueError):
    """The modules differ at a point in a tensor of this name, by something that has no deviation."""

    def __init__(self, message, name, point):
        super().__init__(message)
        self.name, self.point = name, point

    @property
    def first(self):
        """As Comparison.first_difference."""
        numbers = {"deviation": float("inf"), "bound": 0.0, "as_a_whole": False, "tensors": []}
        return {"step": self.point, "quantity": "output", "tensor": self.name, **numbers}


class NotFinite(ValueError):
    """The loss of a itself is NaN or infinite at the present parameters."""


class Undecided(ValueError):
    """a itself gives nothing that b can be compared with."""


@dataclass(frozen=True)
class Difference:
    """The first place, in order of execution, at which the two differ by more than rounding explains."""

    what: str  # "output", "input", "gradient from the backward", "parameter", "weights at step 3", ...
    tensor: str  # the module or parameter, by its name in a
    partner: str  # its name in b
    deviation: float  # max |b - a| / max |a|
    bound: float  # the deviation of this tensor that rounding explains
    as_a_whole: bool = False  # the deviation is relative to its size: each entry is within its bound
    measured: str = ""  # what agrees after one change there

    def __str__(self) -> str:
        names = self.tensor if self.tensor == self.partner else f"{self.tensor} (in b: {self.partner})"
        of = "size" if self.as_a_whole else "largest entry"
        off = f"off by {self.deviation:.1e} of its {of}" if math.isfinite(self.deviation) else "0 or not finite in one alone"
        said = f"{off}, rounding explains {self.bound:.1e}" if self.bound else "not equal"
        return f"{self.what} of {names}: {said}" + (f"; {self.measured}" if self.measured else "")


@dataclass(frozen=True)
class Probe:
    """A parameter of a, every other entry times 1 + size: how much of the bound that takes (above 1 it is detected)."""

    parameter: str
    size: float
    share: float

    @property
    def detected(self) -> bool:
        return self.share > 1


def text_of(probes):
    detected, missed = ([p for p in probes if p.detected is found] for found in (True, False))
    text = f"{len(detected)} of {len(probes)} parameters, each alone with every other entry times 1 + {probes[0].size:.0e}, were detected"
    if detected:
        least = min(detected, key=lambda p: p.share)
        text += f", the weakest ({least.parameter}) at {least.share:.1e} times the bound"
    return text + (f"; not detected: {', '.join(p.parameter for p in missed)}" if missed else "")


@dataclass(frozen=True)
class Result:
    """bool(result): whether the two are equivalent. result.document(): the fields for JSON."""

    verdict: str  # "equivalent", "different" or "undecided"
    reason: str
    dtype: str  # "f64" or "f32": dtype of the computation
    points: int  # number of points at which outputs, loss and gradients were compared
    steps: int = 0  # number of training steps that were compared; 0: none
    first_difference: Optional[Difference] = None
    likely_cause: Optional[str] = None  # tested on these two modules, or the classes that they have at the first place
    deviation: float = 0.0  # the largest over everything that was compared
    control: float = 0.0  # the same for a with every parameter moved by one ulp
    tolerance: float = 0.0  # 30 times the control plus 64 eps: the largest deviation allowed for a tensor
    detectable: Optional[float] = None  # a factor of 1 + this number on any compared tensor is detected
    probes: tuple = ()  # parameters of a that were changed to see if the comparison detects it
    batches: str = ""  # how many were read, and if these are all
    why_f32: Optional[str] = None  # the model that computes in f32, if this changed the comparison from f64 to f32
    not_compared: tuple = ()  # outputs and buffers that were left out, each with the reason

    #: the last result that was used as a bool and is not equivalent: pytest_plugin.py shows its text
    denied: ClassVar[Optional["Result"]] = None

    def __bool__(self) -> bool:
        if self.verdict == "equivalent":
            return True
        Result.denied = self
        return False

    @property
    def sentence(self) -> str:
        return f"{self.verdict}: {self.reason}"

    def document(self) -> dict:
        """For JSON, with the names that the results of the program have (docs/results.md): "verdict", "sentence",
        "first_difference", "likely_cause", "detectable", and the other fields. None stands for a number that is not finite."""
        return finite({"schema": "isonorm.compare_modules/1", "sentence": self.sentence, **asdict(self), "text": str(self)})

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.points:
            where = [self.dtype, f"{self.points} point{'' if self.points == 1 else 's'}"]
            where += [f"{self.steps} steps of training"] * (self.steps > 0) + [self.batches]
            lines.append(f"  compared    in {', '.join(where)}")
        if self.why_f32:
            lines.append(f"  f32         {self.why_f32}")
        if self.first_difference:
            lines.append(f"  first       {self.first_difference}")
        if self.likely_cause:
            lines.append(f"  cause       {self.likely_cause}")
        if self.tolerance:
            lines.append(
                f"  tolerance   {self.tolerance:.1e} (30 times {self.control:.1e}, which one ulp does to a, and 64 eps);"
                f" largest deviation {self.deviation:.1e}"
            )
        if self.probes:
            lines.append(f"  detectable  {text_of(self.probes)}")
        if self.not_compared:
            lines.append(f"  left out    {', '.join(self.not_compared)}")
        return "\n".join(lines)

    __repr__ = __str__


def finite(value):
    """A value of JSON with None in place of NaN and infinities."""
    if isinstance(value, dict):
        return {name: finite(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
