"""The figures of scripts/bench as one HTML page that needs nothing else.   usage: page.py bench.json > bench.html"""

import json
import sys
from html import escape
from pathlib import Path

import table

STYLE = (Path(__file__).parent / "page.css").read_text()
LIMITS = ["limit", "own limit", "registers", "memory"]
# Colours of bars by series, in page.css. Other series are ours and have their own colours.
NAMED = {"ours": "ours", "eager": "eager", "autocast": "eager", "compile": "compile", "compiled": "compile"} | dict.fromkeys(LIMITS, "limit")
COLOURS = 9  # for stacked bars; see page.css


def bar(group, row, series):
    """One series of a row: name, bar, value, ratio; green if it meets the aim."""
    value, ratio, largest = row["values"][series], row["ratios"].get(series), max(row["values"].values())
    width = 100 * max(value, 0) / largest if largest > 0 else 0
    kind = NAMED.get(series, f"s{group['series'].index(series)}")
    met = {True: " met", False: "", None: ""}
    of_value = met[table.reached(row["aim"] if series == "ours" else None, value)]
    of_ratio = met[table.reached(group["aims"].get(series), ratio)]
    text = "" if ratio is None else f"{ratio:.2f}"
    return (f'<div class="name">{escape(series)}</div><div class="track"><div class="bar {kind}" style="width:{width:.2f}%">'
            f'</div><span class="{of_value}">{table.number(value)}</span></div><div class="ratio{of_ratio}">{text}</div>')


def bars(group):
    """The bars of a row share a scale that begins at 0; rows have scales of their own."""
    ratios = table.compared(group)
    heading = escape(group["ratio"].format("it")) if ratios else ""
    out = [f'<div class="bars"><div class="head">{escape(table.unit(group))}</div><div class="head right">{heading}</div>']
    for row in group["rows"]:
        aim = f' <small>aim: {table.aim_text(row["aim"])}</small>' if row["aim"] else ""
        out.append(f'<h3>{escape(row["name"])}{aim}</h3>')
        out += [bar(group, row, series) for series in row["values"]]
    out.append("</div>")
    if group["aims"]:
        aims = "; ".join(f"{group['ratio'].format(s) if s in ratios else s} {table.aim_text(aim)}"
                         for s, aim in group["aims"].items())
        out.append(f'<p class="note">Aim: {escape(aims)}.</p>')
    return "".join(out)


def lines(group):
    """Values over the rows, from 0."""
    left, top, wide, high = 40, 14, 470, 230
    rows, values = group["rows"], [v for row in group["rows"] for v in row["values"].values()]
    largest = max(1.2, max(values) * 1.05)
    x = lambda i: left + wide * (i + 0.5) / len(rows)
    y = lambda v: top + high * (1 - v / largest)
    out = [f'<svg viewBox="0 0 {left + wide + 130} {top + high + 44}" role="img" aria-label="{escape(group["title"])}">']
    for tick in [t / 4 for t in range(int(4 * largest) + 1)]:
        out.append(f'<line class="grid" x1="{left}" x2="{left + wide}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
                   f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.2f}</text>')
    for mark, name in group["marks"]:
        out.append(f'<line class="mark" x1="{left}" x2="{left + wide}" y1="{y(mark):.1f}" y2="{y(mark):.1f}"/>'
                   f'<text x="{left + 4}" y="{y(mark) + (-4 if mark == 1 else 13):.1f}">{escape(name)}</text>')
    for i, row in enumerate(rows):
        out.append(f'<text x="{x(i):.1f}" y="{top + high + 18}" text-anchor="middle">{escape(row["name"])}</text>')
    out.append(f'<text x="{left + wide / 2}" y="{top + high + 38}" text-anchor="middle">{escape(group["across"])}</text>')
    # Labels are at the last point of each line, moved apart if they would overlap.
    ends = sorted((y(rows[-1]["values"][s]), s) for s in group["series"])
    below = -1e9
    for end, series in ends:
        below = max(end, below + 15)
        k = group["series"].index(series)
        points = " ".join(f'{x(i):.1f},{y(row["values"][series]):.1f}' for i, row in enumerate(rows))
        out.append(f'<polyline class="line l{k}" points="{points}"/>'
                   f'<text class="label t{k}" x="{x(len(rows) - 1) + 10:.1f}" y="{below + 4:.1f}">{escape(series)}</text>')
    return "".join(out) + "</svg>" + cells(group)


def shares(group):
    """Stacked bars of 100 %; items that are never among the largest are summed up."""
    shown = [s for s in group["series"] if any(row["values"].get(s, 0) >= 1 for row in group["rows"])][:COLOURS]
    out = ['<div class="legend">' + "".join(f'<span><i class="k{k}"></i>{escape(s)}</span>' for k, s in enumerate(shown))
           + '<span><i class="rest"></i>other</span></div>']
    for row in group["rows"]:
        parts = [(f"k{k}", s, row["values"].get(s, 0)) for k, s in enumerate(shown)]
        parts.append(("rest", "other", sum(v for s, v in row["values"].items() if s not in shown)))
        out.append(f'<h3>{escape(row["name"])}</h3><div class="stack">')
        for kind, series, value in parts:
            label = f"{value:.0f}" if value >= 4 else ""
            out.append(f'<div class="{kind}" style="width:{value:.2f}%" title="{escape(series)} {value:.1f} %">{label}</div>')
        out.append("</div>")
    return "".join(out)


def cells(group):
    """The same as numbers."""
    head = "".join(f"<th>{escape(s)}</th>" for s in group["series"])
    body = "".join(f'<tr><td>{escape(row["name"])} {escape(row["detail"])}</td>' + "".join(f"<td>{row['values'][s]:.{group['decimals'] or 2}f}</td>" for s in group["series"])
                   + "</tr>" for row in group["rows"])
    return f"<details><summary>numbers</summary><table><tr><th></th>{head}</tr>{body}</table></details>"


def card(group):
    show = {"bars": bars, "lines": lines, "shares": shares}[group["kind"]]
    wide = "" if group["kind"] == "bars" else " wide"
    unit = "" if group["kind"] == "bars" else f' <small>{escape(table.unit(group))}</small>'
    return (f'<section class="card{wide}"><h2>{escape(group["title"])}{unit}</h2>{show(group)}'
            f'<p class="note">{escape(group["note"])}</p></section>')


def page(results):
    where = results["environment"]
    warnings = "".join(f'<p class="warning"><b>Warning.</b> {escape(w)}</p>' for w in results["warnings"])
    facts = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in where.items())
    cards = "".join(card(g) for g in results["groups"])
    title = results.get("title", "isonorm and PyTorch on the CPU")
    lead = results.get("lead") or (f"Training and inference on {where['threads']} threads of {where['CPU']}, BLAS core "
                                   f"{where['BLAS'].split()[-1]}, {where['date']}. In f32, if a figure does not say bf16.")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{warnings}
<div class="legend top"><span><i class="ours"></i>ours</span>
<span><i class="s0"></i><i class="s1"></i><i class="s2"></i><i class="s3"></i>ours, named at the bar</span>
<span><i class="eager"></i>eager, autocast: PyTorch</span>
<span><i class="compile"></i>compile, compiled: PyTorch with torch.compile</span>
<span><i class="limit"></i>limit: the matrix products of our step alone, by OpenBLAS; own limit: by our kernel; registers: the
same number of multiply-adds; memory: memcpy of the same bytes</span></div>
<div class="cards">{cards}</div>
<h2>How this was measured</h2>
<p class="lead">The programs run at the same time and take turns, a few steps each, round by round, so that other load
affects all alike. Times are medians of all steps; a ratio is the median of the rounds' ratios. The bars of a row
share a scale that begins at zero. A green figure meets its aim.</p>
<dl>{facts}</dl>
<details><summary>All figures as text</summary><pre>{escape(table.text(results))}</pre></details>
</main></body></html>
"""


if __name__ == "__main__":
    sys.stdout.write(page(json.loads(Path(sys.argv[1]).read_text())))
