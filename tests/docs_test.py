"""scripts/docs can fail: which outputs are the same, which links lead nowhere, which quoted code is not there, what a header's page has.
What the pages quote is in the sources."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

from pages import api, blocks, links, quotes  # noqa: E402


def same(shown, printed):
    return blocks.same(shown.split("\n"), printed.split("\n"))


class Blocks(unittest.TestCase):
    def test_same(self):
        for shown, printed in [("loss 0.4833", "loss 0.4834"), ("9.9e-01", "1.0e+00"), ("took 3.1 s", "took 4 s"), ("a 8.5e-16", "a 0.0e+00"),
                               ("12 % of the bound", "9 % of the bound"), ("-----\na  b", "-------\na b"), ("a\n...\nd", "a\nb\nc\nd"),
                               ("...\nd", "a\nd"), ("a\n...", "a")]:
            self.assertTrue(same(shown, printed), (shown, printed))

    def test_different(self):
        for shown, printed in [("loss 0.4833", "loss 0.4835"), ("1.404", "1.4040"), ("1.1e-02", "1.3e-02"), ("took 3 steps", "took 4 steps"),
                               ("a 8.5e-16", "a 8.5e-04"), ("80.26 %", "80.29 %"), ("0.5 x", "0 x"), ("a\n...\nd", "a\nb\nc"), ("a\nb", "a\nb\nc"),
                               ("a\nb\nc", "a\nb")]:
            self.assertFalse(same(shown, printed), (shown, printed))

    def test_before(self):
        """Commands that a page does not show make what its blocks read, and print nothing."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for command, messages in [("echo 3 > x", 0), ("test -d $ROOT/scripts && echo 3 > x", 0), ("echo oops | tee x", 2), ("false", 1)]:
                (root / "a.md").write_text(f"<!-- before: {command} -->\n\n<!-- output of: cat -->\n```\n$ cat x\n3\n```\n")
                self.assertEqual(len(blocks.wrong(root, ["a.md"], root, quick=True)), messages, command)


class Pages(unittest.TestCase):
    def test_links(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            (root / "a.md").write_text("# A `b` c!\n\n[x](b.md) [y](#a-b-c) [z](#none) `core/no.h`\n\n    [code](no.md)\n\n```\n[more](no.md)\n```\n")
            self.assertEqual([m.split(": ")[1] for m in links.broken(root, ["a.md"])], ["`core/no.h`", "b.md", "#none"])

    def test_quotes(self):
        """Quoted lines are in their file, but for comments and white space; a rule finds the line and the file that a page lacks."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in [("a/x.h", "int f();  // six\nint g(int n);\nint h();\n"), ("a/y.cpp", "#include \"a/x.h\"\n  int h() { return 7; }\n")]:
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)

            def wrong(page):
                (root / "p.md").write_text(page)
                return [m.removeprefix("p.md").lstrip(":0123456789 ") for m in quotes.wrong(root, ["p.md"])]

            self.assertEqual(wrong("```cpp\n// a/x.h\nint f();\n\nint g(int n);  // of n\n```\n"), [])
            self.assertEqual(wrong("```cpp\n// a/x.h\nint f();\n...\nint h();\n// a/y.cpp\nint h() { return 7; }\n```\n"), [])
            self.assertEqual(wrong("```cpp\n// a/x.h\nint f();\nint h();\n```\n"), ["a/x.h does not have these lines"])
            self.assertEqual(wrong("```cpp\n// a/z.h\nint f();\n```\n"), ["there is no file a/z.h"])
            self.assertEqual(wrong("<!-- every line with: \\bh\\(\\) -->\n```cpp\n// a/x.h\nint h();\n```\n"),
                             ["a/y.cpp:2 is not quoted, and has \\bh\\(\\)"])
            self.assertEqual(wrong("<!-- every file with: \\bh\\(\\) -->\n`a/y.cpp`\n"), ["a/x.h is not named, and has \\bh\\(\\)"])

    def test_quotes_of_this_tree(self):
        self.assertEqual(quotes.wrong(ROOT, links.pages(ROOT)), [])

    def test_headers(self):
        text = "\nnamespace a {\nclass Forward;\n\n// One.\nint f(int x);\nint g();\n\n// Two {.\nstruct S {\n  int x;  // }\n\n private:\n  int y;\n};\n}\n"
        (one, functions), (two, struct) = api.entries(text)
        self.assertEqual((one, functions), (["One."], ["int f(int x);", "int g();"]))
        self.assertEqual((two, api._without_private(struct)), (["Two {."], ["struct S {", "  int x;  // }", "};"]))

    def test_index(self):
        """Each public header is listed once; those that users call come before kernels and memory."""
        with tempfile.TemporaryDirectory() as folder:
            listed = [header.as_posix() for header in api.write(ROOT, Path(folder))]
            index = (Path(folder) / "README.md").read_text()
        places = {header: index.find(f"* [{header}](") for header in listed}
        self.assertEqual(sorted(listed), sorted(re.findall(r"^\* \[([^\]]+)\]", index, re.M)))
        self.assertLess(places["nn/attention.h"], places["core/tensor.h"])
        self.assertLess(max(places[h] for h in listed if h.startswith(("nn/", "training/"))), places["core/kernels/norm.h"])


if __name__ == "__main__":
    unittest.main()
