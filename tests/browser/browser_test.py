"""Checks pages in a real browser: the course's pictures and slides, the documentation's site and pictures, a page of scripts/bench,
and reports of the program.

usage: browser_test.py ISONORM [FOLDER]     writes screenshots to FOLDER, to look at. Exit code 77 if there is no chromium."""

import base64
import math
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests/benchmarks")]
import bench_test  # noqa: E402
import chromium  # noqa: E402
from pages import site  # noqa: E402

SCREENS = [(1200, 900, "light"), (390, 844, "dark")]  # like a desktop's and a phone's
REPORTS = {
    "invariance": "experiment invariance --report {page}",
    "plot": "plot {log} --report {page}",
    "proof": "prove --width 16 --depth 1 --heads 2 --batch 8 --steps 20 -q --report {page}",
}
TRAIN = "train --width 16 --depth 1 --heads 2 --batch 8 --steps 20 --log {log} -q"

# Faults of a page, one line each.
FAULTS = r"""(() => {
  const out = [], root = document.documentElement, shown = e => e.checkVisibility() && e.getBoundingClientRect().width > 0;
  if (root.scrollWidth > innerWidth + 1 && root.tagName != "svg") out.push(`${root.scrollWidth} px wide`);
  const channels = css => (css.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => {
    for (; e instanceof Element; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor);
      if (c.length == 3 || c[3] > 0) return c;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(root).colorScheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
  };
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) || /STYLE|SCRIPT|TITLE/i.test(e.tagName) || !shown(e)) continue;
    const style = getComputedStyle(e), said = e.textContent.trim().slice(0, 40), size = parseFloat(style.fontSize);
    const [a, b] = [light(channels(e.closest("svg") ? style.fill : style.color)), light(behind(e))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 3) out.push(`${said}: contrast ${contrast.toFixed(1)}`);
    if (size < 10) out.push(`${said}: ${size} px`);
    if (style.overflowX == "hidden" && e.scrollWidth > e.clientWidth + 1) out.push(`${said}: cut`);
  }
  for (const image of document.images) if (!image.naturalWidth) out.push(`${image.src}: no image`);
  const svgs = [...document.querySelectorAll("svg")].filter(e => !e.parentElement?.closest("svg"));
  for (const svg of svgs) {
    const frame = (svg.closest("figure") ?? svg.parentElement ?? svg).getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(shown).map(e => [e.textContent, e.getBoundingClientRect()]);
    texts.forEach(([said, box], i) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        out.push(`${said}: outside of its picture`);
      for (const [other, beside] of texts.slice(i + 1))
        if (Math.min(box.right, beside.right) - Math.max(box.left, beside.left) > 2 &&
            Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top) > 4) out.push(`${said} lies on ${other}`);
    });
  }
  return out;
})()"""


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # the last process may still be writing
        cls.browser = chromium.Chromium(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def seen(self, file, width=1200, height=900, scheme="light", allowed=None):
        """Opens the page and checks that it has no faults, and no errors except those that contain `allowed`."""
        self.browser.open(file, width, height, scheme)
        if SHOTS:
            (SHOTS / f"{file.stem}_{width}.png").write_bytes(base64.b64decode(self.browser.screenshot()))
        errors = [error for error in self.browser.errors if not allowed or allowed not in error]
        self.assertEqual((self.browser.value(FAULTS), errors), ([], []), f"{file.name} on {width} px, {scheme}")

    def drawn(self, selector):
        """The end point of each line in the picture."""
        return self.browser.value(f"[...document.querySelectorAll('#view {selector}')].map(e => [+e.getAttribute('x2'), +e.getAttribute('y2')])")

    def check_picture(self, x):
        """The axes define an orthographic view, and x, P x, D and Q must be drawn in it."""
        axes, scale, mean = self.drawn("line[stroke=\"#999\"]:not([stroke-dasharray])"), 48, sum(x) / 3
        view = [[axes[i][k] / 2.6 for i in range(3)] for k in range(2)]  # maps entries to (right, down)
        for a in range(2):
            for b in range(2):
                self.assertAlmostEqual(sum(p * q for p, q in zip(view[a], view[b])), scale**2 * (a == b), 9)
        q1, q2 = [1 / math.sqrt(2), -1 / math.sqrt(2), 0], [1 / math.sqrt(6), 1 / math.sqrt(6), -2 / math.sqrt(6)]
        rows = [[1, 0, -1], [0, 1, -1], q1, q2, [v - mean for v in x], x]
        arrows = self.drawn("line[stroke-width]")
        self.assertEqual(len(arrows), len(rows))
        for row, arrow in zip(rows, arrows):
            for k in range(2):
                self.assertAlmostEqual(sum(v * w for v, w in zip(view[k], row)), arrow[k], 9)
        said = self.numbers()
        squared = sum((v - mean)**2 for v in x)
        self.assertEqual([r[2].split(" = ")[-1] for r in said], [f"mean {mean:.2f}".replace("-0.00", "0.00"), *[f"{squared:.3f}"] * 3])

    def test_projection(self):
        for screen in SCREENS:
            self.seen(ROOT / "course/projection.html", *screen)
            self.check_picture([2, -0.4, 1.4])
            before = self.drawn("line")
            x, y = self.browser.value("(b => [b.x + b.width / 2, b.y + b.height / 2])(document.getElementById('view').getBoundingClientRect())")
            self.browser.drag(x, y, 40, 25)
            self.assertNotEqual(self.drawn("line"), before)
            self.check_picture([2, -0.4, 1.4])
            before = self.drawn("line")
            self.browser.value("document.getElementById('view').focus()")
            self.browser.press("ArrowLeft")
            self.assertNotEqual(self.drawn("line"), before)
            for end in [2, 2, 2], [2, -2, -2], [-2, 2, 2]:  # the ends of the sliders
                self.browser.value(f"[{end}].flat().forEach((v, i) => (inputs[i].value = v, inputs[i].dispatchEvent(new Event('input'))))")
                self.check_picture(end)
                box = self.browser.value("(b => [b.x, b.y, b.x + b.width, b.y + b.height].map(Math.abs))(view.getBBox())")
                self.assertLess(max(box), 190)
            self.assertEqual(self.browser.errors, [])

    def numbers(self):
        return self.browser.value("[...document.querySelectorAll('#numbers tr')].map(r => [...r.cells].map(c => c.textContent))")

    def check_backward(self, x, dy):
        """The table must have the numbers of `isonorm explain`, which prints six digits."""
        said = {name: [float(v) for v in values] for name, *values in self.numbers()}
        row = [",".join(f"{v:g}" for v in values) for values in (x, dy)]
        printed = subprocess.run([ISONORM, "explain", "layer_norm", row[0], f"--grad={row[1]}"], check=True, capture_output=True, text=True).stdout
        for line, name in ("through the entry itself", "s dy"), ("through the mean", "- s mean(dy)"), \
                          ("through the deviation", "- s y mean(dy y)"), ("gradient", "dx"):
            expected = next(text for text in printed.splitlines() if text.strip().startswith(line)).rsplit("= (", 1)[1].rstrip(")").split(", ")
            for a, b in zip(said[name], map(float, expected), strict=True):
                self.assertLess(abs(a - b), 1e-6 + 5e-6 * abs(b), name)  # half a unit of the last digit of each
        self.assertLess(abs(said["sum of dx"][0]), 1e-6)

    def test_layer_norm_backward(self):
        for screen in SCREENS:
            self.seen(ROOT / "course/layer_norm_backward.html", *screen)
            self.check_backward([2, -0.4, 1.4], [1, 0.5, -0.5])
            # The first bar of x, from 2 to 1.
            x, y, end = self.browser.value("(m => [31 * m.a + m.e, 39 * m.d + m.f, 56 * m.d + m.f])(view.getScreenCTM())")
            self.browser.drag(x, y, 0, end - y)
            self.check_backward([1, -0.4, 1.4], [1, 0.5, -0.5])
            self.browser.value("inputs[1][2].focus()")
            self.browser.press("ArrowRight")
            self.check_backward([1, -0.4, 1.4], [1, 0.5, -0.4])
            self.browser.value("(eps.value = '0', draw())")
            self.assertEqual(self.numbers()[-2:], [["sum of dx", "0.000000"], ["dx . x", "0.000000"]])
            self.browser.value("(inputs[0].forEach(i => i.value = 1), draw())")
            self.assertEqual(self.numbers(), [["dx is undefined: the row is constant and eps is 0"]])
            self.assertEqual(self.browser.errors, [])

    def test_stream(self):
        for screen in SCREENS:
            self.seen(ROOT / "course/stream.html", *screen)
            self.check_stream([2, 0.5, 0.8])
            # The first bar of x, from 1.5 to 0.5.
            x, y, end = self.browser.value("(m => [31 * m.a + m.e, 47.5 * m.d + m.f, 64.5 * m.d + m.f])(view.getScreenCTM())")
            self.browser.drag(x, y, 0, end - y)
            self.check_stream([1, 0.5, 0.8])
            self.browser.value("inputs[1][2].focus()")
            self.browser.press("ArrowRight")
            self.check_stream([1, 0.5, 0.9])
            self.assertEqual(self.browser.errors, [])

    def check_stream(self, row):
        """The page's rows are `row` in three coordinate systems, and its norms those of `isonorm explain`."""
        shown = self.numbers()
        mean = sum(row) / 3
        stored = [row[0] - mean, row[1] - mean]
        for at, (norm, given) in enumerate([("layer_norm", row), ("rms_norm", [*stored, row[2] - mean]), ("crms_norm", stored)]):
            said = subprocess.run([ISONORM, "explain", norm, ",".join(map(repr, given))], check=True, capture_output=True, text=True).stdout
            result = re.search(r"  result .*= \((.*)\)", said).group(1).split(", ")
            for place, numbers in (at, given), (3 + at, [float(v) for v in result]):
                self.assertEqual(len(shown[place]) - 1, len(numbers))
                for x, y in zip(shown[place][1:], numbers):
                    self.assertLess(abs(float(x) - y), 1e-6 + 5e-6 * abs(y), shown)
        self.assertEqual(shown[6], ["largest difference of the norms", "0.000000"])

    def test_slides(self):
        for screen in SCREENS:
            self.seen(ROOT / "course/slides.html", *screen)
            cut = "[...document.querySelectorAll('section')].filter(s => s.scrollHeight > s.clientHeight || s.scrollWidth > s.clientWidth).length"
            self.assertEqual(self.browser.value(cut), 0)
            slides = self.browser.value("slides.length")
            at = "Math.round(scrollY / innerHeight)"
            for key, places in ("ArrowRight", [*range(1, slides), slides - 1]), ("ArrowLeft", [*range(slides - 2, -1, -1), 0]):
                for place in places:
                    self.browser.press(key)
                    self.assertEqual(self.browser.value(at), place, key)
            self.assertEqual(self.browser.errors, [])

    def test_pictures(self):
        for file in sorted((ROOT / "docs/images").glob("*.svg")):
            self.seen(file, 1200, 900)

    def test_site(self):
        """The site is dark if the reader's system is, as its pictures are, and its code has colours."""
        if not (shutil.which("mkdocs") and shutil.which("pygmentize")):
            self.skipTest("no mkdocs or no pygmentize")
        folder = Path(self.folder.name) / "docs"
        self.assertEqual(site.write(ROOT, folder), 0)
        for page in "index", "docs/normalization", "docs/adding_an_op", "api/index", "api/nn/attention.h":
            for width, height, scheme in SCREENS + [(1200, 900, "dark")]:
                self.seen(folder / f"site/{page}.html", width, height, scheme, allowed="search/worker.js")  # search needs a server
                ground = self.browser.value("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
                self.assertEqual(max(ground) < 64, scheme == "dark", page)
        colours = self.browser.value("new Set([...document.querySelectorAll('.codehilite span')].map(e => getComputedStyle(e).color)).size")
        self.assertGreater(colours, 3)

    def test_bench(self):
        page = Path(self.folder.name) / "bench.html"
        page.write_text(bench_test.page.page(bench_test.results()))
        for screen in SCREENS:
            self.seen(page, *screen)

    def test_reports(self):
        log = Path(self.folder.name) / "train.jsonl"
        subprocess.run([ISONORM, *TRAIN.format(log=log).split()], check=True, stdout=subprocess.DEVNULL)
        for name, command in REPORTS.items():
            page = Path(self.folder.name) / f"{name}.html"
            subprocess.run([ISONORM, *command.format(page=page, log=log).split()], check=True, stdout=subprocess.DEVNULL)
            for screen in SCREENS:
                with self.subTest(name, screen=screen):
                    self.seen(page, *screen)


if __name__ == "__main__":
    if not chromium.PROGRAM:
        print("no chromium")
        sys.exit(77)
    ISONORM, SHOTS = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
