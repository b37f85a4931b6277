"""convert, verify and prove: as the program does, with exceptions for its errors."""

import json
import os
import signal
import struct
import tempfile
import threading
import unittest

import numpy as np

import isonorm

WIDTH = 8
SPEC = {
    "width": WIDTH,
    "norms": {"h.*.norm": "1e-5", "last": "1e-5"},
    "writers": {"table": 1, "h.*.down": 0},
    "readers": {"h.*.up": {"dim": 1, "norm": "h.*.norm"}, "head": {"dim": 1, "norm": "last"}},
}


def tensors():
    g = np.random.default_rng(1)
    made = {"table": (11, WIDTH), "last.weight": (WIDTH,), "last.bias": (WIDTH,)}
    made |= {"head.weight": (11, WIDTH), "head.bias": (11,)}
    for i in range(2):
        made |= {f"h.{i}.norm.weight": (WIDTH,), f"h.{i}.norm.bias": (WIDTH,)}
        made |= {f"h.{i}.up.weight": (16, WIDTH), f"h.{i}.up.bias": (16,)}
        made |= {f"h.{i}.down.weight": (WIDTH, 16), f"h.{i}.down.bias": (WIDTH,)}
    return {name: g.normal(size=shape).astype(np.float32) for name, shape in made.items()}


def save(path, arrays):
    header, data, at = {}, b"", 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        data, at = data + a.tobytes(), at + a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    with open(path, "rb") as f:
        content = f.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    body = content[8 + length :]
    return {n: np.frombuffer(body[t["data_offsets"][0] : t["data_offsets"][1]], np.float32).reshape(t["shape"]) for n, t in header.items()}


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)


class Files(InAFolder):
    def setUp(self):
        super().setUp()
        save(self.path("a"), tensors())
        with open(self.path("spec"), "w") as f:
            json.dump(SPEC, f)
        self.how = {"source": "layer_norm", "spec": self.path("spec")}

    def test_converts_and_verifies(self):
        r = isonorm.convert(self.path("a"), self.path("b"), "rms_norm", **self.how)
        self.assertTrue(r, r)
        self.assertIn("equivalent", str(r))
        down = load(self.path("b"))["h.0.down.weight"]
        np.testing.assert_allclose(down.mean(0), 0, atol=1e-6)
        centred = tensors()["h.0.down.weight"]
        np.testing.assert_allclose(down, centred - centred.mean(0), atol=1e-6)
        v = isonorm.verify(self.path("a"), self.path("b"), spec=self.path("spec"))
        self.assertTrue(v, v)
        readers = v["streams"][0]["outputs"][0]
        self.assertEqual(readers["what"], "readers of random rows")
        self.assertTrue(0 < readers["deviation"] <= readers["detectable"] < 1e-5)

    def test_another_function(self):
        changed = tensors()
        changed["h.1.up.weight"][3, 4] *= 1.001
        save(self.path("b"), changed)
        v = isonorm.verify(self.path("a"), self.path("b"), spec=self.path("spec"))
        self.assertFalse(v)
        self.assertIn("different", str(v))
        self.assertIn("h.1.up.weight", str(v))

    def test_an_interrupt_ends_verify(self):
        large = tensors() | {"table": np.ones((1 << 19, WIDTH), np.float32)}
        save(self.path("a"), large)
        save(self.path("b"), large | {"head.bias": np.full(11, np.nan, np.float32)})
        verify = lambda: isonorm.verify(self.path("a"), self.path("b"), spec=self.path("spec"))
        with self.assertRaisesRegex(ValueError, "head.bias"):  # at its end
            verify()
        timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            verify()
        timer.join()

    def test_errors(self):
        with self.assertRaisesRegex(OSError, "missing"):
            isonorm.convert(self.path("missing"), self.path("b"), "rms_norm")
        with self.assertRaisesRegex(OSError, "nowhere"):
            isonorm.convert(self.path("a"), self.path("nowhere/b"), "rms_norm", **self.how)
        with self.assertRaisesRegex(ValueError, "what model it holds"):
            isonorm.verify(self.path("a"), self.path("a"))
        with self.assertRaisesRegex(ValueError, "sandwich"):
            isonorm.convert(self.path("a"), self.path("b"), "sandwich", **self.how)
        with self.assertRaisesRegex(ValueError, "--fold|fold"):
            isonorm.convert(self.path("a"), self.path("b"), "rms_norm", fold="none")
        with self.assertRaisesRegex(ValueError, "rotation"):
            isonorm.verify(self.path("a"), self.path("a"), up_to="luck")
        for wrong in {"dtype": "f8"}, {"fold": "some"}:
            with self.assertRaisesRegex(ValueError, "is not one of"):
                isonorm.convert(self.path("a"), self.path("b"), "rms_norm", **{**self.how, **wrong})
        with self.assertRaisesRegex(ValueError, "NUL"):
            isonorm.verify(self.path("a") + "\0b", self.path("a"), spec=self.path("spec"))
        with self.assertRaises(UnicodeEncodeError):
            isonorm.verify(os.fsencode(self.path("a")) + b"\xff", self.path("a"), spec=self.path("spec"))
        self.assertTrue(isonorm.verify(os.fsencode(self.path("a")), self.path("a"), spec=self.path("spec")))
        self.assertFalse(os.path.exists(self.path("b")))


class Proofs(InAFolder):
    def setUp(self):
        super().setUp()
        with open(self.path("text"), "w") as f:
            f.write("the quick brown fox jumps over the lazy dog. " * 100)
        small = {"width": 16, "depth": 1, "heads": 2, "context": 16, "batch": 4, "controls": 2, "threads": 1}
        self.small = {"model": "gpt", "data": self.path("text"), "steps": 4, **small}

    def test_proves(self):
        said = []
        p = isonorm.prove(forms=["rms_norm"], progress=said.append, **self.small)
        self.assertTrue(p, p)
        self.assertEqual((p.verdict, p["schema"], p["horizon"]["of"]), ("equivalent", "isonorm.prove/1", 4))
        self.assertIn("Equivalent", str(p))
        self.assertIn(", core ", p["environment"]["blas"])
        self.assertIn(p["environment"]["products"], ("isonorm", "OpenBLAS"))
        self.assertEqual([s["step"] for s in said if s["phase"] == "training"], [1, 2, 3, 4])

    def test_errors(self):
        for wrong, message in (
            ({"width": 15}, "15"),
            ({"wdith": 16}, "no option --wdith"),
            ({"width": "wide"}, "wide"),
            ({"forms": ["sandwich"]}, "sandwich"),
            ({"controls": 0}, "controls"),
            ({"precision": "bf16"}, "not an option of a proof"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                isonorm.prove(**{**self.small, **wrong})
        with self.assertRaisesRegex(OSError, "missing"):
            isonorm.prove(**{**self.small, "data": self.path("missing")})

    def test_what_progress_raises_ends_it(self):
        said = []

        def progress(info):
            said.append(info)
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            isonorm.prove(progress=progress, **self.small)
        self.assertEqual(len(said), 1)

    def test_an_interrupt_ends_it(self):
        long = {**self.small, "steps": 100000}
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()  # which also needs the interpreter's lock while the proof runs
        with self.assertRaises(KeyboardInterrupt):
            isonorm.prove(**long)
        timer.join()


if __name__ == "__main__":
    unittest.main()
