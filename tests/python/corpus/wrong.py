"""The wrong pairs."""

from . import wrong_gradients, wrong_layers, wrong_sequences, wrong_trainings  # noqa: F401

try:
    from . import wrong_public  # noqa: F401
except ImportError:  # transformers or timm is missing
    pass
