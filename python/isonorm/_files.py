"""The work of the program isonorm on files, and proofs: convert, verify, prove."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from . import _isonorm

Path = Union[str, bytes, os.PathLike]


def _path(path):
    """As text without a NUL, at which C++ would end it. Raises UnicodeEncodeError if it is not UTF-8."""
    name = os.fsdecode(path)
    name.encode()
    if "\0" in name:
        raise ValueError(f"{name!r} is no path: it has a NUL")
    return name


@dataclass(frozen=True)
class FileResult:
    """What `isonorm convert`, `verify` or `prove` writes with --json (docs/results.md): result["verdict"], result["horizon"]["steps"].
    document: all of it as a dict. bool(result): the verdict is "equivalent"; of convert: verified and written."""

    document: dict = field(repr=False)

    @property
    def verdict(self):
        return self.document["verdict"]

    def __bool__(self):
        return self.verdict == "equivalent"

    def __getitem__(self, name):
        return self.document[name]

    def __str__(self):
        return self.document["text"].rstrip("\n")

    __repr__ = __str__


def _result(document):
    return FileResult(json.loads(document))


def convert(
    path_in: Path,
    path_out: Path,
    form: str,
    *,
    source: str = "",
    spec: Path = "",
    reference: Path = "",
    dtype: str = "",
    data: Path = "",
    fold: str = "all",
    eps: float = 0.0,
    inference: bool = False,
) -> FileResult:
    """A checkpoint, safetensors file or folder of the Hugging Face hub in another form of its residual stream ("layer_norm",
    "rms_norm", "crms_norm", "crms_isometric"), verified before it is written: `isonorm convert`, whose options these are (source:
    --from). Where the result is not the same function nothing is written, and bool(result) is False.

    Raises ValueError on bad input and options, OSError where a file cannot be read or written, KeyboardInterrupt on Ctrl-C (then
    nothing is written). Other threads run meanwhile.
    """
    return _result(
        _isonorm.convert(
            _path(path_in),
            _path(path_out),
            form,
            source=source,
            spec=_path(spec),
            reference=_path(reference),
            dtype=dtype,
            data=_path(data),
            fold=fold,
            eps=eps,
            inference=inference,
        )
    )


def verify(path_a: Path, path_b: Path, *, spec: Path = "", data: Path = "", up_to: str = "") -> FileResult:
    """Whether two checkpoints are one function, whatever the forms of their streams: `isonorm verify`, whose options these are.

    Raises ValueError on bad input, OSError where a file cannot be read, KeyboardInterrupt on Ctrl-C. Other threads run meanwhile.
    """
    return _result(_isonorm.verify(_path(path_a), _path(path_b), spec=_path(spec), data=_path(data), up_to=up_to))


def prove(
    *, forms: Iterable[str] = (), controls: int = 4, progress: Optional[Callable[[dict], Any]] = None, **options: Any
) -> FileResult:
    """Trains Pre-LN, the forms, controls and negative controls side by side, and compares them at every step: `isonorm prove`,
    whose options these are, with underscores (steps=20, width=32, model="gpt", data=...).

    progress gets a dict after every step: "phase", "step", "steps", "loss", "deviation", "control_deviation", "done" (from 0 to
    1). What it raises ends the proof. Raises ValueError on bad options and data, OSError on files that cannot be read,
    KeyboardInterrupt on Ctrl-C. Other threads run meanwhile.
    """

    def word(value):
        return str(value).lower() if isinstance(value, bool) else _path(value) if isinstance(value, (str, bytes, os.PathLike)) else str(value)

    return _result(
        _isonorm.prove(list(forms), controls, {name: word(value) for name, value in options.items()}, progress)
    )
