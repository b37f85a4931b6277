"""The facts that a measurement depends on, and warnings about settings that make the figures worse than the machine."""

import datetime
import os

def warnings(facts, variables, load):
    """One line each; `facts` is a ready line of ours, `load` the load average per core."""
    found = []
    core, forced = facts["core"], variables.get("OPENBLAS_CORETYPE")
    has, uses = facts["cpu_bits"], facts["core_bits"]  # width of a vector in bits; 0: the core is unknown
    slow = "the limit by OpenBLAS is" if facts["products"] == "isonorm" else "our matrix products and the limit by OpenBLAS are"
    if uses and uses < has:
        why = f"OPENBLAS_CORETYPE={forced} forces" if forced else "OpenBLAS chose"
        cure = "unset it" if forced else "a newer OpenBLAS may know this CPU"
        found.append(f"{why} the BLAS core {core} ({uses}-bit vectors) on a CPU with {has}-bit vectors: "
                     f"{slow} slower than this machine's; {cure}")
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
