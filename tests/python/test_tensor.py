"""Tensors to and from NumPy and torch: the same memory, kept as long as anyone sees it."""

import gc
import unittest

import numpy as np

import isonorm

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

DTYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "u8": np.uint8}


class NumPy(unittest.TestCase):
    def test_shares_memory_both_ways(self):
        for name, dtype in DTYPES.items():
            for n in (1, 6, 1000):  # of one element, of a few bytes, of a block
                with self.subTest(name, n=n):
                    a = np.arange(n).astype(dtype)
                    t = isonorm.tensor(a, copy=False)
                    self.assertEqual((t.dtype, t.shape, t.strides), (name, (n,), (1,)))
                    a[0] = 7
                    back = t.numpy()
                    self.assertEqual((back[0], back.dtype), (7, a.dtype))
                    back[-1] = 9
                    self.assertEqual(a[-1], 9)
                    self.assertTrue(np.shares_memory(a, back))

    def test_lives_longer_than_the_source(self):
        a = np.arange(100000.0)
        t = isonorm.tensor(a, copy=False)
        del a
        gc.collect()
        junk = [np.zeros(100000) for _ in range(4)]  # would take the memory that was given back
        out = t.numpy()
        del t, junk
        gc.collect()
        junk = [np.ones(100000) for _ in range(4)]
        np.testing.assert_array_equal(out, np.arange(100000.0))
        del junk

    def test_the_source_goes_with_the_last_view(self):
        import weakref

        class Watched(np.ndarray):
            pass

        a = np.zeros(10).view(Watched)
        gone = weakref.ref(a)
        t = isonorm.tensor(a, copy=False)
        out = t.numpy()
        del a, t
        gc.collect()
        self.assertIsNotNone(gone())
        del out
        gc.collect()
        self.assertIsNone(gone())

    def test_views(self):
        a = np.arange(24.0).reshape(2, 3, 4)
        for view in (a.T, a[:, 1:, ::2], a[0, 0, 0, ...], a[:, :0], a[1:]):
            t = isonorm.tensor(view, copy=False)
            self.assertEqual(t.shape, view.shape)
            np.testing.assert_array_equal(t.numpy(), view)
            if view.size:
                self.assertTrue(np.shares_memory(a, t.numpy()))

    def test_copies_where_it_must(self):
        fixed = np.arange(6.0)
        fixed.flags.writeable = False
        askew = np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64)
        for name, a in {"read-only": fixed, "backwards": np.arange(6.0)[::-1], "askew": askew}.items():
            with self.subTest(name):
                with self.assertRaisesRegex(ValueError, "cannot be shared"):
                    isonorm.tensor(a, copy=False)
                out = isonorm.tensor(a).numpy()
                np.testing.assert_array_equal(out, a)
                self.assertFalse(np.shares_memory(a, out))
        a = np.zeros(3)
        self.assertFalse(np.shares_memory(a, isonorm.tensor(a, copy=True).numpy()))

    def test_refuses(self):
        for given, said in (
            (np.zeros(2, np.int32), "int32, expected f32"),
            (np.zeros(2, np.complex64), "complex64"),
            (np.zeros(2, ">f4"), "byte order"),
            (np.zeros((1,) * 9), "9 dimensions"),
            ("text", "no array"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                isonorm.tensor(given)

    def test_bool_and_buffers(self):
        self.assertEqual(isonorm.tensor(np.array([True, False])).dtype, "u8")
        data = bytearray(b"abc")
        t = isonorm.tensor(data, copy=False)
        t.numpy()[0] = ord("x")
        self.assertEqual(data, b"xbc")

    @unittest.skipUnless(ml_dtypes, "needs ml_dtypes")
    def test_bf16(self):
        a = np.array([[1.5, -2.0, 3.0]], ml_dtypes.bfloat16)
        t = isonorm.tensor(a.T, copy=False)
        self.assertEqual((t.dtype, t.shape), ("bf16", (3, 1)))
        self.assertEqual(t.numpy().dtype, a.dtype)
        a[0, 1] = 4.0
        np.testing.assert_array_equal(t.numpy().astype(float), [[1.5], [4.0], [3.0]])


@unittest.skipUnless(torch, "needs torch")
class Torch(unittest.TestCase):
    def test_torch_does_not_move_shared_memory(self):
        for dtype in (torch.float32, torch.bfloat16):
            a = torch.arange(4, dtype=dtype)
            t = isonorm.tensor(a, copy=False)
            with self.assertRaises(RuntimeError):
                a.resize_(1000000)
            self.assertEqual(t.torch().tolist(), [0, 1, 2, 3])

    def test_shares_memory_both_ways(self):
        for name in ("float32", "float64", "bfloat16", "int64", "uint8"):
            with self.subTest(name):
                a = torch.arange(12).reshape(3, 4).to(getattr(torch, name)).T
                t = isonorm.tensor(a, copy=False)
                self.assertEqual((t.shape, t.strides), ((4, 3), (1, 4)))
                a[1, 2] = 77
                out = t.torch()
                self.assertEqual(out.dtype, a.dtype)
                self.assertTrue(torch.equal(out, a))
                self.assertEqual(out.data_ptr(), a.data_ptr())

    def test_lives_longer_than_the_source(self):
        a = torch.arange(100000.0)
        t = isonorm.tensor(a)
        del a
        out = t.torch()
        del t
        gc.collect()
        junk = [torch.zeros(100000) for _ in range(4)]
        self.assertTrue(torch.equal(out, torch.arange(100000.0)))
        del junk

    def test_gradients_are_refused(self):
        for a in (torch.nn.Parameter(torch.zeros(3)), torch.zeros(3, requires_grad=True) * 2):
            with self.assertRaisesRegex(ValueError, r"detach\(\)"):
                isonorm.tensor(a)
        isonorm.tensor(torch.nn.Parameter(torch.zeros(3)).detach())

    def test_conjugates_and_other_devices_are_refused(self):
        with self.assertRaises(ValueError):
            isonorm.tensor(torch.zeros(3, device="meta"))
        with self.assertRaises(ValueError):
            isonorm.tensor(torch.zeros(3, dtype=torch.complex64).conj())

    def test_a_negative_view_is_copied(self):
        a = torch.complex(torch.zeros(3), torch.arange(3.0)).conj().imag  # minus what lies there
        self.assertTrue(a.is_neg())
        self.assertEqual(isonorm.tensor(a).numpy().tolist(), [0, -1, -2])
        with self.assertRaisesRegex(ValueError, "cannot be shared"):
            isonorm.tensor(a, copy=False)


if __name__ == "__main__":
    unittest.main()
