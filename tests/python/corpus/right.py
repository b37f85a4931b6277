"""The right pairs."""

from . import right_attention, right_layers, right_losses, right_norms, right_trainings  # noqa: F401

try:
    from . import right_public  # noqa: F401
except ImportError:  # transformers or timm is missing
    pass
