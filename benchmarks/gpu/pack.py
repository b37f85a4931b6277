"""`scripts/gpu pack`: builds, and makes one archive with everything that the other legs need on a machine with only a driver."""

import datetime
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import build
from run import NotBuilt
from sides import ROOT, Failure

NAME = "isonorm-gpu"
LARGEST = 30e6  # bytes
ARCHITECTURES = "80;90a"
FILES = ["scripts/gpu", "benchmarks/*.py", "benchmarks/page.css", "benchmarks/gpu/*.py", "docs/gpu.md", "LICENSE",
         "tests/fixtures/optim_gpt.safetensors"]
# Parts of the C library. They must be the machine's own: newer versions run programs that were linked with older ones.
SYSTEM = ("linux-vdso.", "ld-linux", "libc.", "libm.", "libdl.", "libpthread.", "librt.", "libutil.", "libresolv.")


def libraries(program):
    """The shared libraries that it needs, the C library's aside."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = [line.split() for line in said.splitlines() if "=>" in line]
    for name, _, path, *_ in found:
        if path == "not":
            raise Failure(f"{program}: its library {name} is not found")
    return {Path(name).name: Path(path) for name, _, path, *_ in found if not name.startswith(SYSTEM)}


def stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", "-o", target, source], check=True)
    else:
        shutil.copy(source, target)
    target.chmod(0o755)


def version():
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return f"{said.stdout.strip() or 'unknown'}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"


def make(tree, programs, archive, preset=9):
    """archive: `programs` of a build tree, their libraries and the scripts, in the folders that they have here. preset: of xz."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        for path in programs:
            if not (tree / path).exists():
                raise NotBuilt(f"{tree / path} is not built")
            stripped(tree / path, stage / "build" / "gpu" / path)
            for name, library in libraries(tree / path).items():
                if not (stage / "build" / "gpu" / "lib" / name).exists():
                    stripped(library, stage / "build" / "gpu" / "lib" / name)
        for pattern in FILES:
            for source in sorted(ROOT.glob(pattern)):
                target = stage / source.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        (stage / "pack.json").write_text(json.dumps({"version": version()}) + "\n")
        partial = archive.with_name(archive.name + ".partial")
        with tarfile.open(partial, "w:xz", preset=preset) as tar:  # 9: its window of 64 MiB finds what programs share
            tar.add(stage, NAME)
        partial.rename(archive)


def unpacked(archive):
    """Returns the pack's build tree and its folder for results, in the system's temporary folder. Unpacks each archive once."""
    try:
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"{NAME}-{digest}"
        if not folder.exists():
            with tarfile.open(archive) as tar, tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{NAME}-") as partial:
                tar.extractall(partial)
                (Path(partial) / NAME).rename(folder)
    except (OSError, tarfile.TarError) as error:
        raise Failure(f"--pack {archive}: {getattr(error, 'strerror', None) or error}")
    return folder / "build" / "gpu", folder / "results"


def leg(self):
    if not build.leg(self, ARCHITECTURES):
        raise NotBuilt("not all programs were built: no pack is made")
    archive = self.options.build / f"{NAME}.tar.xz"
    self.say(f"packing {archive}")
    make(self.options.build, build.programs(self.options.form).values(), archive)
    size = archive.stat().st_size
    if size > LARGEST:
        raise Failure(f"{archive} has {size / 1e6:.1f} MB, more than {LARGEST / 1e6:.0f}")
    self.say(f"{archive}: {size / 1e6:.1f} MB; elsewhere: scripts/gpu lease --pack {archive.name}")
