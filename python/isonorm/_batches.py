"""The batches of a comparison, read as far as needed."""

import copy
import itertools

from ._models import in_dtype, naming


class Batches:
    """The batch of a point or step, counted from 0. Floating tensors are in `dtype`.

    batches: a function of the number, or an iterable, of which no more batches are read than asked for; after the last it begins
             again."""

    def __init__(self, batches, dtype):
        self.function = batches if callable(batches) else None
        with naming("batches", dtype):
            self.rest = iter(()) if self.function else iter(batches)
        try:
            self.size = len(batches)
        except (TypeError, NotImplementedError):  # a generator, or a DataLoader of a stream
            self.size = None
        self.read, self.asked, self.dtype = [], 0, dtype

    def in_dtype(self, dtype):
        """The same batches in another dtype."""
        other = copy.copy(self)
        other.dtype = dtype
        return other

    def __call__(self, at):
        self.asked = max(self.asked, at + 1)
        with naming("batches", self.dtype):
            made = self.function(at) if self.function else None
            self.read.extend(itertools.islice(self.rest, max(0, at + 1 - len(self.read))))
        if self.function:
            return in_dtype(made, self.dtype)
        if not self.read:
            raise ValueError("compare: there are no batches")
        return in_dtype(self.read[at % len(self.read)], self.dtype)

    def __str__(self):
        """How many were read, for people."""
        count = self.asked if self.function else len(self.read)
        all_read = self.function or self.asked > count or self.size == count
        return f"{count} batch{'' if count == 1 else 'es'}" + ("" if all_read else " (no more were read)")
