"""The notebook of the course and docs/python.md print what stands in them; numbers may differ by rounding, and are left out."""

import contextlib
import io
import json
import os
import pathlib
import re
import tempfile
import unittest

from test_files import SPEC, save, tensors

try:
    import torch  # noqa: F401
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOK, PAGE = ROOT / "course" / "norms.ipynb", ROOT / "docs" / "python.md"


def without_numbers(text):
    """Nor what is nearest to its bound: rounding decides."""
    text = re.sub(r"\((loss|gradient|weights) at step", "(# at step", text)
    return re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "#", text)


def printed_by(source, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source, names)
    return printed.getvalue()


@unittest.skipIf(torch is None, "torch is not installed")
class Pages(unittest.TestCase):
    def test_cells_print_what_stands_there(self):
        names = {}
        cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
        self.assertGreater(len(cells), 3)
        for cell in cells:
            printed = printed_by("".join(cell["source"]), names)
            expected = "".join("".join(o["text"]) for o in cell["outputs"])
            self.assertEqual(without_numbers(printed), without_numbers(expected))

    def test_blocks_print_what_stands_behind_them(self):
        blocks = re.findall(r"```python\n(.*?)```\n\n<!-- not run:.*?-->\n```\n(.*?)```", PAGE.read_text(), re.S)
        self.assertEqual(len(blocks), 6)
        names, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            save("pre_ln.safetensors", tensors())
            pathlib.Path("spec.json").write_text(json.dumps(SPEC))
            pathlib.Path("text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 100)
            for source, expected in blocks:
                self.assertEqual(without_numbers(printed_by(source, names)), without_numbers(expected))
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
