"""compare() of modules that compute in a coarser dtype than the comparison's: the cause names them."""

import unittest

import isonorm
import pairs  # noqa: F401: skips these tests if torch is missing

import torch
import torch.utils.checkpoint
from torch import nn

INPUTS = [torch.randn(6, 16, generator=torch.Generator().manual_seed(i)) for i in range(3)]


class RMSNorm(nn.Module):
    """x w / sqrt(mean(x^2) + eps), in the dtype of x."""

    def __init__(self, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(16)), eps

    def forward(self, x):
        return self.weight * x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps)


class LlamaRMSNorm(RMSNorm):
    """The same as in transformers, which casts; by default to f32."""

    inside = torch.float32

    def forward(self, x):
        y = x.to(self.inside)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


class InBf16(LlamaRMSNorm):
    inside = torch.bfloat16


class Attention(nn.Module):
    """One head over rows; its softmax in `inside`, or in the dtype of x."""

    def __init__(self, inside=None):
        super().__init__()
        self.q, self.k, self.inside = nn.Linear(16, 16), nn.Linear(16, 16), inside

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / 4
        return torch.softmax(scores, -1, dtype=self.inside).to(x.dtype) @ x


class Turned(nn.Module):
    """x cos(t), with angles t made in f64."""

    def angles(self, dtype=torch.float64):
        return 10 * torch.arange(16, dtype=dtype) / 16 / 3

    def forward(self, x):
        return x * self.angles().cos().to(x.dtype)


class Table(Turned):
    """The same with angles made in __init__ in f32, and their cosines in f32."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", self.angles(torch.float32))

    def forward(self, x):
        return x * self.table.float().cos().to(x.dtype)


def net(norm, act=None):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 16), norm, act or nn.GELU(), nn.Linear(16, 5))


AGREE = 'compute(s?) in f32, and without that the two agree; dtype="f32" compares them in f32$'


class Rounding(unittest.TestCase):
    def different(self, a, b, **more):
        r = isonorm.compare(a, b, **{"batches": INPUTS, "dtype": "f64", **more})
        self.assertEqual(r.verdict, "different", r)
        return r

    def test_a_norm_that_casts(self):
        for a, b, said in (
            (LlamaRMSNorm(), RMSNorm(), r"^1 of a \(LlamaRMSNorm\) "),
            (RMSNorm(), LlamaRMSNorm(), r"^1 of b \(LlamaRMSNorm\) "),
        ):
            r = self.different(net(a), net(b))
            self.assertRegex(r.likely_cause, said + AGREE)
            self.assertEqual(r.first_difference.tensor, "1")
            self.assertGreater(r.deviation, 1e-10)
            self.assertTrue(isonorm.compare(net(a), net(b), batches=INPUTS, dtype="f32"))
        self.assertRegex(self.different(LlamaRMSNorm(), RMSNorm()).likely_cause, r"^a \(LlamaRMSNorm\) computes in f32")

    def test_modules_for_inference(self):
        def without_gradients(mode, norm):
            class Inference(norm):
                def forward(self, x):
                    with mode():
                        return super().forward(x)

            return Inference()

        for mode in torch.no_grad, torch.inference_mode:
            r = self.different(without_gradients(mode, LlamaRMSNorm), without_gradients(mode, RMSNorm))
            self.assertRegex(r.likely_cause, r"^a \(Inference\) " + AGREE)

    def test_of_transformers(self):
        try:
            from transformers.models.llama.modeling_llama import LlamaRMSNorm as Norm
        except ImportError:
            self.skipTest("transformers is not installed")
        self.assertRegex(self.different(net(Norm(16)), net(RMSNorm())).likely_cause, r"^1 of a \(LlamaRMSNorm\) " + AGREE)

    def test_a_cast_beside_other_modules(self):
        def made(inside):
            torch.manual_seed(1)
            return nn.Sequential(Attention(inside), nn.Linear(16, 5))

        r = self.different(made(torch.float32), made(None))
        self.assertRegex(r.likely_cause, r"^0 of a \(Attention\) " + AGREE)

    def test_both_cast(self):
        class Otherwise(LlamaRMSNorm):
            def forward(self, x):
                y = x.float()
                return self.weight * (y / torch.sqrt(y.square().sum(-1, keepdim=True) / 16 + self.eps)).to(x.dtype)

        r = self.different(net(LlamaRMSNorm()), net(Otherwise()))
        self.assertRegex(r.likely_cause, r"^1 of a \(LlamaRMSNorm\) and 1 of b \(Otherwise\) " + AGREE)

    def test_several(self):
        def made(norm):
            torch.manual_seed(1)
            return nn.Sequential(norm(), nn.Linear(16, 16), norm(), nn.Linear(16, 16), norm())

        r = self.different(made(LlamaRMSNorm), made(RMSNorm))
        self.assertRegex(r.likely_cause, r"^0 of a \(LlamaRMSNorm\) and 2 more " + AGREE)

    def test_checkpointed(self):
        """A recomputation ends inside of a module, by an exception."""

        class Checkpointed(nn.Module):
            def __init__(self, norm):
                super().__init__()
                self.net = net(norm)

            def forward(self, x):
                return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)

        r = isonorm.compare(Checkpointed(LlamaRMSNorm()), Checkpointed(RMSNorm()), batches=INPUTS, points=1, dtype="f64")
        self.assertRegex(r.likely_cause, r"^net.1 of a \(LlamaRMSNorm\) computes " + AGREE.partition(" ")[2])

    def test_a_coarser_one_than_f32(self):
        for dtype in "f64", "f32":
            r = self.different(net(InBf16()), net(RMSNorm()), dtype=dtype)
            self.assertEqual(r.likely_cause, "1 of a (InBf16) computes in bf16, and without that the two agree")

    def test_autocast(self):
        class Cast(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 5)

            def forward(self, x):
                with torch.autocast("cpu", torch.bfloat16):
                    return self.linear(x).to(x.dtype)

        class Plain(Cast):
            def forward(self, x):
                return self.linear(x)

        def made(kind):
            torch.manual_seed(1)
            return kind()

        for dtype in "f32", None:
            r = self.different(made(Cast), made(Plain), dtype=dtype)
            self.assertEqual(r.likely_cause, "linear of a (Linear) computes in bf16, and without that the two agree")
        self.assertIn("a computes under autocast to bf16, which casts nothing in f64, so both were compared in f32", str(r))
        for b, more in (Plain, {"dtype": "f64"}), (Cast, {}):
            r = isonorm.compare(made(Cast), made(b), batches=INPUTS, **more)
            self.assertTrue(r, r)
            self.assertEqual(r.not_compared, ('autocast (it casts nothing in f64; dtype="f32" compares with it)',))

    def test_a_table_that_was_made_in_f32(self):
        """Without the cast it is in f32 still; that the two agree in f32 is said beside what else is known."""
        r = self.different(Table(), Turned())
        self.assertEqual(
            r.likely_cause,
            "a is Table(), b of b is Turned(); a (Table) computes in f32, and in f32 the two agree; "
            'dtype="f32" compares them in f32',
        )

    def test_outputs_of_two_dtypes(self):
        class Logits(nn.Linear):
            def forward(self, x):
                return super().forward(x).float()

        def made(kind):
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(16, 16), kind(16, 5))

        r = self.different(made(Logits), made(nn.Linear))
        self.assertRegex(r.likely_cause, r"^1 of a \(Logits\) " + AGREE)
        self.assertTrue(isonorm.compare(made(Logits), made(nn.Linear), batches=INPUTS, dtype="f32"))

    def test_a_map(self):
        """BatchNorm folded into a linear map, by its statistics, which the user's module has in f32."""
        torch.manual_seed(1)
        a = nn.Sequential(nn.Linear(16, 5), nn.BatchNorm1d(5)).eval()
        with torch.no_grad():
            a[1].running_var.uniform_(0.5, 2)

        def folded(of_buffers):
            def fold(p):
                gain = p["1.weight"] / torch.sqrt(of_buffers(a[1].running_var) + a[1].eps)
                return {"weight": p["0.weight"] * gain[:, None], "bias": p["0.bias"] * gain + p["1.bias"]}

            return fold

        more = {"batches": INPUTS, "carry": True}
        self.assertTrue(isonorm.compare(a, nn.Linear(16, 5), map=folded(torch.Tensor.double), **more))
        r = self.different(a, nn.Linear(16, 5), map=folded(lambda t: t), carry=True)
        self.assertRegex(r.likely_cause, "^the map " + AGREE)

    def test_another_mistake_beside_it(self):
        r = self.different(net(LlamaRMSNorm()), net(LlamaRMSNorm(1e-3)))
        self.assertEqual(r.likely_cause, "eps of 1 is 1e-06, of 1 in b 0.001; with a's the two agree")
        r = self.different(net(LlamaRMSNorm()), net(LlamaRMSNorm(1.1e-6)))
        self.assertEqual(r.likely_cause, "eps of 1 is 1e-06, of 1 in b 1.1e-06; with a's the two agree")
        r = self.different(net(LlamaRMSNorm()), net(RMSNorm(1e-3)))
        self.assertNotIn("agree", r.likely_cause)
        r = self.different(net(RMSNorm()), net(RMSNorm(), nn.GELU("tanh")))
        self.assertNotIn("f32", r.likely_cause)

    def test_the_modules_stay_as_they_are(self):
        a, b = net(LlamaRMSNorm()), net(RMSNorm())
        self.different(a, b)
        self.assertEqual(torch.get_default_dtype(), torch.float32)
        for module in [*a.modules(), *b.modules()]:
            self.assertFalse(module._forward_hooks or module._forward_pre_hooks)
        self.assertEqual(a(INPUTS[0]).dtype, torch.float32)


if __name__ == "__main__":
    unittest.main()
