// Internal: the style sheet of charts, for a page and for an SVG file of its own. Series differ by colour and by dash;
// colours keep their meaning in light, dark and print.
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

}  // namespace isonorm::reports
