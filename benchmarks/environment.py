"""What a measurement depends on, and what about it makes the figures worse than the machine."""

import datetime
import os

# Widest vectors, in bits, of the kernels behind OpenBLAS's core names (x86-64).
CORE_BITS = {
    512: {"skylakex", "cooperlake", "sapphirerapids"},
    256: {"haswell", "zen", "excavator", "steamroller", "piledriver", "bulldozer", "sandybridge"},
    128: {"prescott", "core2", "penryn", "dunnington", "nehalem", "atom", "nano", "barcelona", "bobcat", "opteron",
          "opteron_sse3", "athlon", "katmai", "coppermine", "northwood", "banias", "dothan"},
}


def vector_bits(flags):
    """Of the widest vectors that a CPU with these flags (of /proc/cpuinfo) has kernels for; 0 where it says nothing."""
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return 512
    if {"avx2", "fma"} <= flags:
        return 256
    return 128 if "sse2" in flags else 0


def core_bits(core):
    return next((bits for bits, cores in CORE_BITS.items() if core.lower() in cores), 0)


def cpu_flags():
    with open("/proc/cpuinfo") as info:
        return next((set(line.split(":")[1].split()) for line in info if line.startswith("flags")), set())


def warnings(facts, flags, variables, load):
    """One line each; `facts` is a ready line of ours, `load` the load average per core."""
    found = []
    core, forced = facts["core"], variables.get("OPENBLAS_CORETYPE")
    has, uses = vector_bits(flags), core_bits(core)
    if uses and uses < has:
        why = f"OPENBLAS_CORETYPE={forced} forces" if forced else "OpenBLAS chose"
        cure = "unset it" if forced else "a newer OpenBLAS may know this CPU"
        found.append(f"{why} the BLAS core {core} ({uses}-bit vectors) on a CPU with {has}-bit vectors: "
                     f"our matrix products are slower than this machine's; {cure}")
    elif forced:
        found.append(f"OPENBLAS_CORETYPE={forced} chooses the BLAS core ({core}), not the CPU")
    if "ISONORM_ISA" in variables:
        found.append(f"ISONORM_ISA={variables['ISONORM_ISA']} chooses our kernels ({facts['instructions']}), not the CPU")
    if load > 0.5:
        found.append(f"other programs keep this machine busy (load {load:.1f} per core before the start): "
                     "single figures may be off, ratios less")
    return found


def describe(facts, torch_version, load):
    """Ordered name -> text, for the page and the terminal."""
    return {
        "CPU": facts["cpu"],
        "cores": str(os.cpu_count()),
        "threads": str(facts["threads"]),
        "BLAS": f"{facts['blas']}, core {facts['core']}",
        "our kernels": facts["instructions"],
        "compiler": facts["compiler"],
        "version": facts["version"],
        "PyTorch": torch_version,
        "load before": ", ".join(f"{x:.2f}" for x in load) + " (1, 5, 15 min)",
        "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }
