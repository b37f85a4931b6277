"""Shared libraries for our programs: from a pack, and cuBLASLt, cuDNN and NCCL from pip's folders."""

import os
import subprocess
from pathlib import Path

from sides import Failure

LIBRARIES = ("libcublasLt.so.", "libcudnn.so.", "libnccl.so.")
ASK = """import importlib.util as u
found = u.find_spec("nvidia")
print(*(found.submodule_search_locations if found else []), sep="\\n")"""


def of_python(python):
    """The folders under site-packages/nvidia of an interpreter that have them."""
    try:
        asked = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise Failure(f"--python {python}: {getattr(error, 'strerror', None) or error}")
    if asked.returncode != 0:
        raise Failure(f"--python {python}: {(asked.stderr.strip().splitlines() or ['it ended without a word'])[-1]}")
    return sorted({str(file.parent) for root in asked.stdout.splitlines() for file in Path(root).glob("*/lib/*.so.*")
                   if file.name.startswith(LIBRARIES)})


def environment(build, python):
    """The environment variables of our programs."""
    theirs = of_python(python) if python else []
    ours = [str(build / "lib")] if (build / "lib").is_dir() else []  # in a pack
    # LD_LIBRARY_PATH needs the paths of PyTorch's libraries, too: cuDNN opens others by name (libnvrtc).
    path = ours + theirs + [os.environ[name] for name in ["LD_LIBRARY_PATH"] if os.environ.get(name)]
    found = {"LD_LIBRARY_PATH": os.pathsep.join(path)} if path else {}
    if theirs and "ISONORM_GPU_LIBRARIES" not in os.environ:
        found["ISONORM_GPU_LIBRARIES"] = os.pathsep.join(theirs)
    return found
