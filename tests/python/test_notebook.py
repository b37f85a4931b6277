"""The notebook of the course prints what stands in it; numbers may differ by rounding, and are left out."""

import contextlib
import io
import json
import pathlib
import re
import unittest

try:
    import torch  # noqa: F401
except ImportError:
    torch = None

NOTEBOOK = pathlib.Path(__file__).parents[2] / "course" / "norms.ipynb"


def without_numbers(text):
    return re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "#", text)


@unittest.skipIf(torch is None, "torch is not installed")
class Notebook(unittest.TestCase):
    def test_cells_print_what_stands_there(self):
        names = {}
        cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
        self.assertGreater(len(cells), 3)
        for cell in cells:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), names)
            expected = "".join("".join(o["text"]) for o in cell["outputs"])
            self.assertEqual(without_numbers(printed.getvalue()), without_numbers(expected))


if __name__ == "__main__":
    unittest.main()
