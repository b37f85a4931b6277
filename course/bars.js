// Rows of three entries as bars, which can be dragged or moved by the arrow keys: for the pages that load this file.
const view = document.getElementById("view");
const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0), mean = a => a.reduce((sum, v) => sum + v, 0) / a.length;
const fixed = v => (Math.abs(v) < 5e-7 ? 0 : v).toFixed(6);

// Sliders for the entries of a row, appended to the element `id`.
function sliders(id, values) {
  document.getElementById(id).innerHTML += values.map((v, i) =>
    ` <label>${i + 1} <input type="range" aria-label="${id} ${i + 1}" min="-2" max="2" step="0.1" value="${v}"></label>`).join("");
  return [...document.querySelectorAll(`#${id} input`)];
}

// A frame of bars, 110 wide, from -3 to 3, at one of three places in each line. Places 0 and 1 can be dragged.
function panel(place, name, values, color) {
  const left = 6 + 122 * (place % 3), top = 22 + 130 * Math.floor(place / 3), zero = top + 51;
  const bars = values.map((v, i) => {
    const x = left + 25 + 30 * i, end = zero - 17 * Math.max(-3, Math.min(3, v));
    return `<line x1="${x}" y1="${zero}" x2="${x}" y2="${end}" stroke="var(--${color})"/>`;
  });
  return `<text x="${left + 55}" y="${top - 6}">${name}</text><rect x="${left}" y="${top}" width="110" height="102"/>` + bars.join("") +
    `<path d="M${left} ${zero}h110" stroke="var(--ink)"/>` +
    (place < 2 ? `<rect class="handle" x="${left}" y="${top}" width="110" height="102" pointer-events="all"/>` : "");
}

// Shows rows of cells in the table `numbers`.
function tabulate(rows) {
  document.getElementById("numbers").innerHTML = rows.map(r => "<tr>" + r.map(c => `<td>${c}</td>`).join("") + "</tr>").join("");
}

// Calls draw() after each change: of a slider, or of a bar in the frames of the two rows in `inputs`.
function listen(inputs, draw) {
  let held = null;
  const drag = e => {
    const at = new DOMPoint(e.clientX, e.clientY).matrixTransform(view.getScreenCTM().inverse());
    if (e.type == "pointerdown") {
      const row = Math.floor(at.x / 122), entry = Math.max(0, Math.min(2, Math.floor((at.x - 16 - 122 * row) / 30)));
      held = row < 2 && at.y > 22 && at.y < 124 ? inputs[row][entry] : null;
      if (held) view.setPointerCapture(e.pointerId);
    }
    if (held && e.buttons) held.value = (73 - at.y) / 17, draw();
  };
  view.addEventListener("pointerdown", drag);
  view.addEventListener("pointermove", drag);
  view.addEventListener("pointerup", () => held = null);
  for (const input of inputs.flat()) input.addEventListener("input", draw);
  draw();
}
