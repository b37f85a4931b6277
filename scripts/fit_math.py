#!/usr/bin/env python3
"""Fit the minimax coefficients of core/formulas/math/*.h, print them, and check that the headers hold exactly these.

    python3 -m venv .venv && .venv/bin/pip install mpmath
    .venv/bin/python scripts/fit_math.py            # print every table and its error
    .venv/bin/python scripts/fit_math.py --check    # exit 1 where a header holds other numbers

Every approximation is p(x)/q(x) with q(0) = 1 (q = 1: a polynomial), chosen so that the largest |w(x) (p/q - g)(x)|
is as small as it can be (Remez, "Sur la determination des polynomes d'approximation de degre donnee", 1934): on
m + n + 2 points the error is made to alternate with one height E, then the points move to the extrema of the error. For a
quotient the equations p - g q = +-E q / w are linear once the q beside E is taken from the round before (Cody, Fraser and
Hart, "Rational Chebyshev approximation using linear equations", Numer. Math. 12, 1968). Coefficients are rounded to the
type one by one, the lowest power first; those not yet rounded are fitted again, so that they absorb the rounding.
"""

import argparse
import pathlib
import struct
import sys

import mpmath as mp

mp.mp.dps = 50
HEADERS = pathlib.Path(__file__).resolve().parent.parent / "core" / "formulas" / "math"


def rounded(value, dtype):
    if dtype == "double":
        return mp.mpf(float(value))
    return mp.mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def text(value, dtype):
    """The shortest decimal number that reads back as this value of the type."""
    for digits in range(1, 18):
        s = f"{float(value):.{digits}g}"
        if rounded(mp.mpf(s), dtype) == value:
            return s if any(c in s for c in ".en") else s + ".0"
    raise ValueError(value)


def evaluate(coefficients, x):
    return mp.polyval(coefficients[::-1], x)


def extrema(error, lo, hi, count):
    """The points of largest error between sign changes of the alternating error."""
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (24 * count)) for i in range(24 * count + 1)]
    values = [error(x) for x in grid]
    best = [0]
    for i in range(1, len(grid)):
        if mp.sign(values[i]) == mp.sign(values[best[-1]]):
            if abs(values[i]) > abs(values[best[-1]]):
                best[-1] = i
        else:
            best.append(i)
    while len(best) > count:  # keep the higher end
        best.pop(0 if abs(values[best[0]]) < abs(values[best[-1]]) else -1)
    points = []
    for i in best:
        if 0 < i < len(grid) - 1:  # vertex of the parabola through three neighbours
            (a, b, c), (u, v, w) = grid[i - 1 : i + 2], values[i - 1 : i + 2]
            bottom = (b - a) * (v - w) - (b - c) * (v - u)
            x = b if bottom == 0 else b - ((b - a) ** 2 * (v - w) - (b - c) ** 2 * (v - u)) / (2 * bottom)
            points.append(x if a < x < c else b)
        else:
            points.append(grid[i])
    return points, max(abs(v) for v in values)


def remez(g, weight, lo, hi, m, n, fixed=()):
    """p of degree m (its first coefficients fixed) over q of degree n, and the largest weighted error."""
    k = len(fixed)
    unknown = m + 1 - k + n
    count = unknown + 1
    if unknown == 0:
        return list(fixed), [mp.mpf(1)], extrema(lambda x: weight(x) * (evaluate(fixed, x) - g(x)), lo, hi, 8)[1]
    points = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + mp.mpf("0.9")) / (2 * count)) for i in range(count)]
    q = [mp.mpf(1)] + [mp.mpf(0)] * n
    best = None
    for _ in range(40):
        for _ in range(12 if n else 1):
            a, b = mp.matrix(count, count), mp.matrix(count, 1)
            for i, x in enumerate(points):
                gx = g(x)
                for j in range(k, m + 1):
                    a[i, j - k] = x**j
                for j in range(1, n + 1):
                    a[i, m + j - k] = -gx * x**j
                a[i, unknown] = (-1) ** i * evaluate(q, x) / weight(x)
                b[i] = gx - evaluate(fixed, x) if k else gx
            solution = mp.lu_solve(a, b)
            q = [mp.mpf(1)] + [solution[m + 1 - k + j] for j in range(n)]
        p = list(fixed) + [solution[j] for j in range(m + 1 - k)]
        points_new, worst = extrema(lambda x: weight(x) * (evaluate(p, x) / evaluate(q, x) - g(x)), lo, hi, count)
        if best is None or worst < best[2]:
            best = p, q, worst
        if len(points_new) < count or worst < abs(solution[unknown]) * mp.mpf("1.0005"):
            break
        points = points_new
    return best


def fit(g, weight, lo, hi, m, n, dtype):
    """The rounded coefficients of p and q, and the largest weighted error that they leave."""
    p, q, _ = remez(g, weight, lo, hi, m, n)
    q = [rounded(c, dtype) for c in q]

    def worst(p):
        return extrema(lambda x: weight(x) * (evaluate(p, x) / evaluate(q, x) - g(x)), lo, hi, m + n + 2)[1]

    for j in range(m + 1):
        p = p[:j] + [rounded(p[j], dtype)] + p[j + 1 :]
        again = remez(lambda x: g(x) * evaluate(q, x), lambda x: weight(x) / evaluate(q, x), lo, hi, m, 0, p[: j + 1])[0]
        p = min(p, again, key=worst)
    return p, q, worst(p)


def near(f, series):
    """f away from 0, its Taylor series (coefficients given by a function of the index) where f would cancel."""
    return lambda x: f(x) if abs(x) > mp.mpf("1e-4") else mp.fsum(series(j) * x**j for j in range(12))


LN2 = mp.log(2)
FAC = mp.factorial


def tables():
    """name, header, g, weight, lo, hi, {type: (m, n)}: see the comments in the headers that use the name."""
    r = LN2 / 2 * mp.mpf("1.001")
    yield ("exp_q", "exp.h", near(lambda x: (mp.expm1(x) - x) / x**2, lambda j: 1 / FAC(j + 2)),
           lambda x: x**2 / abs(mp.expm1(x)) if x else mp.mpf("1e-30"), -r, r, {"float": (4, 0), "double": (9, 0)})

    yield ("log_p", "log.h",
           near(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda j: mp.mpf(-1) ** j / (j + 3)),
           lambda f: abs(f**3 / mp.log1p(f)) if f else mp.mpf("1e-30"),
           mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1, {"float": (8, 0)})
    s = mp.sqrt(2) - 1
    s = (s / (2 + s)) ** 2
    yield ("log_r", "log.h",
           near(lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / z - 2 / z, lambda j: mp.mpf(2) / (2 * j + 3)),
           lambda z: z if z else mp.mpf("1e-30"), mp.mpf(0), s * mp.mpf("1.001"), {"double": (6, 0)})

    def tanh_series(j):
        return mp.taylor(lambda x: mp.tanh(x), 0, 31)[2 * j + 3]

    tanh_cut = mp.mpf("0.55") ** 2
    yield ("tanh_small", "exp.h", near(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, tanh_series),
           lambda z: z if z else mp.mpf("1e-30"), mp.mpf(0), tanh_cut, {"float": (1, 1), "double": (2, 3)})

    yield ("erf_small", "gelu.h",
           near(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
                lambda j: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** j / (FAC(j) * (2 * j + 1)) - (1 if j == 0 else 0)),
           lambda z: mp.mpf(1), mp.mpf(0), mp.mpf(1), {"float": (6, 0), "double": (11, 0)})
    for dtype, hi, m in (("float", mp.mpf("3.95"), 8), ("double", mp.mpf("5.95"), 20)):
        yield ("erf_tail", "gelu.h", lambda t: -mp.log(mp.erfc(t + 1)), lambda t: mp.erfc(t + 1) / mp.erf(t + 1),
               mp.mpf(0), hi - 1, {dtype: (m, 0)})
    for dtype, hi, mn in (("float", mp.mpf("14.7"), (5, 6)), ("double", mp.mpf("39"), (10, 11))):
        yield ("gelu_tail", "gelu.h", lambda x: mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) / 2,
               lambda x: 2 * mp.exp(-x * x / 2) / mp.erfc(x / mp.sqrt(2)), mp.mpf(0), hi, {dtype: mn})

    z = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    yield ("sin_s", "trig.h",
           near(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda j: mp.mpf(-1) ** (j + 1) / FAC(2 * j + 3)),
           lambda z: z if z else mp.mpf("1e-30"), mp.mpf(0), z, {"double": (5, 0)})
    yield ("cos_c", "trig.h",
           near(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda j: mp.mpf(-1) ** j / FAC(2 * j + 4)),
           lambda z: z**2 if z else mp.mpf("1e-30"), mp.mpf(0), z, {"double": (5, 0)})


def parts(value, dtype, *bits):
    """Splits value into a sum of numbers; all but the last are truncated to this number of bits."""
    out = []
    for b in bits:
        unit = mp.mpf(2) ** (mp.floor(mp.log(value, 2)) - b + 1)
        out.append(mp.floor(value / unit) * unit)
        value -= out[-1]
    return out + [rounded(value, dtype)]


def constants():
    """name, header, type, numbers: the constants that range reductions subtract in parts."""
    yield "ln2", "ieee.h", "float", parts(LN2, "float", 15)
    yield "ln2", "ieee.h", "double", parts(LN2, "double", 32)
    yield "half pi", "trig.h", "double", parts(mp.pi / 2, "double", 33, 33)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the headers instead of printing")
    parser.add_argument("--only", help="the one table to fit")
    args = parser.parse_args()
    missing = 0

    def report(title, header, *rows):
        nonlocal missing
        if args.check:
            held = (HEADERS / header).read_text()
            missing += sum(number not in held for row in rows for number in row)
        else:
            print(title, *(", ".join(row) for row in rows), sep="\n  ", flush=True)

    for name, header, dtype, numbers in constants():
        if args.only in (None, name):
            report(f"{name}<{dtype}> in {header}", header, [text(c, dtype) for c in numbers])
    for name, header, g, weight, lo, hi, degrees in tables():
        for dtype, (m, n) in degrees.items() if args.only in (None, name) else ():
            p, q, worst = fit(g, weight, lo, hi, m, n, dtype)
            title = f"{name}<{dtype}> on [{mp.nstr(lo, 4)}, {mp.nstr(hi, 4)}], error 2^{mp.nstr(mp.log(worst, 2), 4)}"
            report(title, header, *([text(c, dtype) for c in row] for row in (p, q)[: 1 + (n > 0)]))
    if args.check and missing:
        print(f"fit_math: {missing} coefficients are not in the headers")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
