"""Signatures, types and texts of the package's functions and results; needs no torch."""

import ast
import dataclasses
import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import isonorm

RESULT = isonorm.Result("different", "at point 1 " + "the loss differs, " * 30, "f64", 1, likely_cause="another eps of a norm")


class Signatures(unittest.TestCase):
    def test_every_public_function_has_types(self):
        functions = [f for f in (getattr(isonorm, name) for name in isonorm.__all__) if inspect.isfunction(f)]
        self.assertGreaterEqual(len(functions), 6)
        for f in functions:
            signature = inspect.signature(f)
            self.assertIsNot(signature.return_annotation, inspect.Signature.empty, f)
            for name, p in signature.parameters.items():
                self.assertIsNot(p.annotation, inspect.Parameter.empty, f"{name} of {f}")

    def test_stub(self):
        """The extension's stub lies beside it if it was built. In it, numpy and torch are methods: types need other names."""
        stub = pathlib.Path(isonorm._isonorm.__file__).resolve().with_name("_isonorm.pyi")
        if not stub.exists():
            self.skipTest("the stub was not built")
        module = ast.parse(stub.read_text())
        imported = {name.asname: name.name for n in module.body if isinstance(n, ast.ImportFrom) for name in n.names}
        tensor = next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
        returned = {f.name: ast.unparse(f.returns) for f in tensor.body if isinstance(f, ast.FunctionDef)}
        self.assertEqual(imported[returned["numpy"]], "ndarray")
        self.assertEqual(imported[returned["__array__"]], "ndarray")
        self.assertEqual(imported[returned["torch"]], "Tensor")
        self.assertEqual((returned["shape"], returned["ndim"]), ("tuple[int, ...]", "int"))


class Texts(unittest.TestCase):
    def test_repr_is_str(self):
        for r in (RESULT, isonorm.FileResult({"verdict": "equivalent", "text": "one\ntwo\n"})):
            self.assertEqual(repr(r), str(r))
            self.assertIn("\n", repr(r))

    def test_document_has_the_names_of_the_program(self):
        """The fields that every verdict of the program has (docs/results.md), for JSON without NaN and infinities."""
        first = isonorm.Difference("output", "1", "ln", float("inf"), 0.0)
        document = dataclasses.replace(RESULT, first_difference=first, probes=(isonorm.Probe("w", 1e-5, float("nan")),)).document()
        page = pathlib.Path(__file__).parents[2].joinpath("docs/results.md").read_text()
        named = re.findall(r"^\| `([a-z_]+)`", page.split("\n## verify\n")[1].split("\n## ")[0], re.MULTILINE)
        shared = set(named) - {"streams"} | {"schema", "text"}
        self.assertLessEqual({"verdict", "sentence", "first_difference", "likely_cause", "detectable"}, shared)
        self.assertLessEqual(shared, set(document))
        self.assertEqual(document["likely_cause"], RESULT.likely_cause)
        self.assertEqual(document["first_difference"]["tensor"], "1")
        self.assertIsNone(document["first_difference"]["deviation"])
        self.assertEqual(json.loads(json.dumps(document, allow_nan=False)), document)

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
    def test_pytest_shows_the_text(self):
        source = f"""
import isonorm
RESULT = isonorm.Result({RESULT.verdict!r}, {RESULT.reason!r}, "f64", 1, likely_cause={RESULT.likely_cause!r})
def test_one():
    assert RESULT
def test_other():
    assert not RESULT
    assert 1 == 2
"""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "test_it.py").write_text(source)
            environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            command = [sys.executable, "-m", "pytest", "-p", "isonorm.pytest_plugin", "-p", "no:cacheprovider", folder]
            printed = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
        self.assertEqual(printed.count(str(RESULT)), 1, printed)


class Arrays(unittest.TestCase):
    def test_numpy_takes_a_tensor_for_an_array(self):
        x = np.arange(6.0).reshape(2, 3)
        t = isonorm.tensor(x)
        self.assertEqual(t.ndim, 2)
        self.assertEqual(isonorm.tensor(np.float64(3.0)).ndim, 0)
        seen = np.asarray(t)
        self.assertEqual((seen.dtype, seen.shape), (x.dtype, x.shape))
        self.assertTrue(np.shares_memory(seen, x))
        self.assertFalse(np.shares_memory(np.array(t, copy=True), x))
        np.testing.assert_array_equal(np.asarray(t, dtype=np.float32), x.astype(np.float32))

    def test_copy_is_true_or_false(self):
        x = np.zeros(3)
        for copy in 1, "yes", np.True_, True:
            self.assertFalse(np.shares_memory(isonorm.tensor(x, copy=copy).numpy(), x))
        for copy in 0, np.False_, False, None:
            self.assertTrue(np.shares_memory(isonorm.tensor(x, copy=copy).numpy(), x))


if __name__ == "__main__":
    unittest.main()
