// Internal: the style sheets of charts, for a page and for an SVG file of its own, and of a report's page. Series
// differ by colour and by dash; colours keep their meaning in light, dark and print.
#pragma once

namespace isonorm::reports {

inline constexpr const char* kChartStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --card: #ffffff; --ink: #1c1d20; --soft: #5d6068; --line: #e3e3df; --grid: #ececE8;
  --reference: #b9bcc4; --rms: #1f66d1; --crms: #0b8a6c; --isometric: #8a3fc4; --core: #ead6fb; --negative: #c9342b; --plain: #d9780a;
  --band: #8d919b; --bound: #6a6d75; --good: #0b7a4b; --good-back: #e4f5ec; --bad: #b3261e; --bad-back: #fbe9e7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131417; --card: #1b1d21; --ink: #e8e8e6; --soft: #a0a3ab; --line: #303239; --grid: #292b31;
    --reference: #5c606b; --rms: #6ea8ff; --crms: #3fcf9f; --isometric: #c795f5; --core: #4a1d6b; --negative: #ff7b70; --plain: #f5ae55;
    --band: #8d919b; --bound: #a9acb5; --good: #5fdc9f; --good-back: #16301f; --bad: #ff8a80; --bad-back: #3a1a18;
  }
}
svg text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg path { fill: none; stroke-linejoin: round; stroke-linecap: round; vector-effect: non-scaling-stroke; }
svg.plot, svg.plot svg { overflow: visible; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; stroke-linecap: butt; }
svg .label { font-size: 11.5px; fill: var(--ink); stroke: var(--card); stroke-width: 3px; paint-order: stroke; }
svg .band { fill: var(--band); fill-opacity: .32; stroke: none; }
svg .bound { stroke: var(--bound); stroke-width: 1.4; stroke-dasharray: 5 4; }
svg .limit { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 1 3; }
svg .rms { stroke: var(--rms); stroke-width: 1.6; }
svg .crms { stroke: var(--crms); stroke-width: 1.6; stroke-dasharray: 7 3; }
svg .isometric { stroke: var(--isometric); stroke-width: 1.6; stroke-dasharray: 2 3; }
svg .raw { stroke: var(--reference); stroke-width: 1; }
svg .reference { stroke: var(--reference); stroke-width: 2.4; }
svg .other { stroke: var(--ink); stroke-width: 1.6; }
svg .negative { stroke: var(--negative); stroke-width: 2.4; }
svg .plain { stroke: var(--plain); stroke-width: 2.4; stroke-dasharray: 6 3; }
svg .nested.reference { stroke: var(--reference); stroke-width: 11; }
svg .nested.rms { stroke-width: 7.5; stroke-dasharray: none; }
svg .nested.crms { stroke-width: 4.4; stroke-dasharray: none; }
svg .nested.isometric { stroke: var(--core); stroke-width: 1.6; stroke-dasharray: none; }
svg .thin.reference { stroke: var(--reference); stroke-width: 6; }
svg .zone { stroke: none; fill-opacity: .7; }
svg .zone.good { fill: var(--good-back); }
svg .zone.bad { fill: var(--bad-back); }
svg circle.dot { fill: none; stroke-width: 1.6; stroke-dasharray: none; }
svg circle.solid.rms { fill: var(--rms); }
svg circle.solid.crms { fill: var(--crms); }
svg circle.solid.isometric { fill: var(--isometric); }
svg circle.solid.other { fill: var(--ink); }
svg circle.solid.negative { fill: var(--negative); }
svg circle.solid.plain { fill: var(--plain); }
)css";

inline constexpr const char* kReportStyle = R"css(
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.12rem; margin: 2.6rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .2rem; font-weight: 600; }
p { margin: .4rem 0; max-width: 74ch; }
.soft, figcaption { color: var(--soft); }
figcaption { font-size: .88rem; margin-top: .5rem; max-width: 90ch; }
.verdict { border-left: 5px solid; border-radius: 4px; padding: .9rem 1.1rem; margin: 1.2rem 0; }
.verdict.good { color: var(--good); background: var(--good-back); }
.verdict.bad { color: var(--bad); background: var(--bad-back); }
.verdict.open { color: var(--soft); background: var(--card); }
.verdict strong { display: block; font-size: 1.25rem; }
.verdict span { color: var(--ink); }
figure { margin: .6rem 0 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px; }
.charts { display: grid; gap: 20px; }
.charts.loss { grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); }
.charts.two { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.charts.three { grid-template-columns: repeat(3, minmax(0, 1fr)); }
@media (max-width: 860px) { .charts.loss, .charts.two, .charts.three { grid-template-columns: minmax(0, 1fr); } }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; margin: 0 0 .7rem; padding: 0; list-style: none; font-size: .88rem; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.charts.loss > div { display: flex; flex-direction: column; }
.charts.loss .legend { flex: 1; align-content: flex-start; }
.legend svg { width: 34px; height: 12px; flex: none; }
svg { display: block; }
table { border-collapse: collapse; width: 100%; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { padding: .42rem .4rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: baseline; }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; }
th:first-child, td:first-child, th.words, td.words { text-align: left; }
td.words { min-width: 6rem; }
tr.group td { border-bottom: 2px solid var(--line); }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
table + table { margin-top: 1.2rem; }
details { margin: 1.2rem 0; } summary { cursor: pointer; font-weight: 600; }
.environment th { text-align: left; vertical-align: baseline; width: 11rem; }
.environment td { text-align: left; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .86rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
@page { size: A4; margin: 14mm; }
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --grid: #ddd;
    --reference: #b9bcc4; --rms: #1f66d1; --crms: #0b8a6c; --isometric: #8a3fc4; --core: #ead6fb; --negative: #c9342b; --plain: #d9780a;
    --band: #8d919b; --bound: #444; --good: #0b7a4b; --good-back: #fff; --bad: #b3261e; --bad-back: #fff;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { font-size: 9.5pt; line-height: 1.4; }
  .legend { font-size: 7.6pt; gap: 0 .8rem; margin-bottom: .3rem; }
  figcaption { font-size: 8.4pt; margin-top: .3rem; }
  .verdict { margin: .7rem 0; padding: .5rem .9rem; }
  main { max-width: none; padding: 0; }
  h2 { margin-top: 1rem; break-after: avoid; }
  figure, .verdict, tr, pre { break-inside: avoid; }
  figure { padding: 8px 10px; }
  .charts.loss { grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); }
  .charts.two { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; }
  .charts.three { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px; }
  table { font-size: 7.4pt; }
  th, td { padding: .25rem .3rem; }
}
)css";

}  // namespace isonorm::reports
