"""The memory of a comparison, in copies of a's parameters; activations are not included."""

import warnings

MUCH = 1e9  # bytes from which a warning is given
#: a and b; parameters of a point; gradients of a, b and four controls; the running parameters and their gradient
POINTS = 11
TRAINING = 4  # parameters, their gradient, and two states of Adam


def copies(controls, trains):
    """The most at a time: at points, or in the negative controls, which are the reference, its controls and up to two more."""
    at_points = POINTS + controls - 4
    return max(at_points, 2 + TRAINING * (controls + 3) + 2) if trains else at_points


def say(a, controls, trains):
    """Warns if the comparison of a takes much memory."""
    size = sum(p.numel() * p.element_size() for p in a.parameters())
    count = copies(controls, trains)
    if size * count > MUCH:
        less = "; fewer controls take less" if trains else ""
        warnings.warn(
            f"compare: takes about {size * count / 1e9:.2g} GB besides activations, {count} times the parameters of a{less}",
            stacklevel=3,
        )
