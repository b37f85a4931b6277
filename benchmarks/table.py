"""The figures of scripts/bench as text for the terminal."""

WIDTH = 38  # of the first column


def number(x):
    """Three significant digits, without an exponent."""
    if abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(x) >= 1 else f"{x:.3f}"


def line(first, cells):
    return (f"{first:{WIDTH}}" + "".join(f"{text:>{width}}" for text, width in cells)).rstrip()


def aim_text(aim):
    return f"{aim[0]} {aim[1]:g}" if aim else ""


def reached(aim, value):
    """Whether a value meets its aim; None where there is none."""
    if not aim or value is None:
        return None
    return value <= aim[1] if aim[0] == "at most" else value >= aim[1]


def compared(group):
    """The series that have ratios."""
    return [s for s in group["series"] if any(s in row["ratios"] for row in group["rows"])]


def bars(group):
    ratios = compared(group)
    headings = group["series"] + [group["ratio"].format(s) for s in ratios]
    widths = [max(15 if group["aims"] else 11, len(h) + 2) for h in headings]
    cells = lambda texts: list(zip(texts, widths))
    yield line(f"{group['title']}, {group['unit']}", cells(headings))
    for row in group["rows"]:
        values = [number(row["values"][s]) if s in row["values"] else "" for s in group["series"]]
        quotients = [f"{row['ratios'][s]:.2f}" if s in row["ratios"] else "" for s in ratios]
        aim = f"   aim: {aim_text(row['aim'])}" if row["aim"] else ""
        yield line(f"  {row['name']}  {row['detail']}", cells(values + quotients)) + aim
    if group["aims"]:
        aims = {s: aim_text(aim) for s, aim in group["aims"].items()}
        yield line("  aim", cells(["" if s in ratios else aims.get(s, "") for s in group["series"]]
                                  + [aims.get(s, "") for s in ratios]))


def shares(group):
    """Series down, rows across; what is below 1 % everywhere is summed up."""
    names = [row["name"] for row in group["rows"]]
    yield line(f"{group['title']}, {group['unit']}", [(name, 12) for name in names])
    shown = [s for s in group["series"] if any(row["values"].get(s, 0) >= 1 for row in group["rows"])]
    for s in shown:
        yield line(f"  {s}", [(f"{row['values'].get(s, 0):.1f}", 12) for row in group["rows"]])
    rest = [sum(v for s, v in row["values"].items() if s not in shown) for row in group["rows"]]
    yield line("  other", [(f"{r:.1f}", 12) for r in rest])


def text(results):
    lines = [f"{name:12} {value}" for name, value in results["environment"].items()]
    lines += [f"\nWARNING: {warning}" for warning in results["warnings"]]
    for group in results["groups"]:
        lines += [""] + list((shares if group["kind"] == "shares" else bars)(group))
        lines += [f"  ({group['note']})"] if group["note"] else []
    return "\n".join(lines)
