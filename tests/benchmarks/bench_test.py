#!/usr/bin/env python3
"""Tests of scripts/bench without PyTorch.   usage: bench_test.py FOLDER-OF-THE-PROGRAMS"""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import environment  # noqa: E402
import page  # noqa: E402
import sections  # noqa: E402
import table  # noqa: E402
from sides import Failure, Side, Work, alternate, ratio  # noqa: E402

PROGRAMS = None  # from the command line


def results():
    def rows(scale):
        return [sections.plain_row(case, {"ours": scale * 2.0, "eager": scale * 4.0, "compile": scale * 3.0}) for case in sections.CASES]
    shares = [sections.plain_row(case, {"matmul": 80.0, "norm_forward": 15.0, "tiny <op>": 0.5}, ratios=False) for case in sections.CASES]
    widths = [sections.plain_row(str(w), {"LayerNorm forward": 0.95, "RMSNorm forward": 0.5}, ratios=False) for w in sections.WIDTHS]
    groups = [
        sections.group("Training step", "ms", rows(123.4), ["ours", "eager", "compile"],
                       aims={"eager": sections.at_most(0.75), "compile": sections.at_most(0.6)}),
        sections.group("Shares", "%", shares, ["matmul", "norm_forward", "tiny <op>"], kind="shares", better=None),
        sections.group("Residual + norm", "of memcpy", widths, ["LayerNorm forward", "RMSNorm forward"], kind="lines",
                       across="width of a <row>", marks=[[0.9, "aim"]], decimals=3, better="higher"),
    ]
    facts = {"CPU": "a CPU", "threads": "2", "BLAS": "OpenBLAS 0.3, core SkylakeX", "date": "2026-01-01"}
    return dict(environment=facts, warnings=["the core <Haswell> is slow"], groups=groups, raw={})


class Presentation(unittest.TestCase):
    def test_page_shows_every_case_and_needs_nothing_else(self):
        html = page.page(json.loads(json.dumps(results())))
        for case in sections.CASES:
            self.assertEqual(html.count(f"<h3>{case}</h3>"), 2)  # bars and shares
        self.assertIn('<div class="ratio met">0.50</div>', html)  # 2 / 4 meets 0.75
        self.assertIn('<div class="ratio">0.67</div>', html)  # 2 / 3 misses 0.6
        self.assertIn("the core &lt;Haswell&gt; is slow", html)
        self.assertNotIn("<op>", html)
        self.assertNotIn("<Haswell>", html)
        self.assertIsNone(re.search(r"https?:|src=|@import|url\(", html))
        self.assertEqual(html.count("<polyline"), 2)
        self.assertIn(">width of a &lt;row&gt;</text>", html)
        self.assertIn(">aim</text>", html)
        self.assertIn("<td>0.950</td>", html)
        self.assertIn("prefers-color-scheme: dark", html)

    def test_colours_are_those_of_the_legend(self):
        """A bar has PyTorch's colours if and only if it is PyTorch's: bf16 and f32 are ours."""
        shown = results()
        names = ["bf16", "f32", "autocast", "compiled"]
        row = sections.row("vit_tiny", {name: {"median_ms": 2.0, "rounds": [[2.0]]} for name in names}, base="bf16")
        shown["groups"].append(sections.group("bf16: training step", "ms", [row], names, "bf16 / {}"))
        html = page.page(shown)
        legend = dict(re.findall(r'<i class="(\w+)"></i>([^<]+)</span>', html.split('class="cards"')[0]))
        self.assertIn("PyTorch", legend["eager"])
        bars = re.findall(r'<div class="name">(\w+)</div><div class="track"><div class="bar (\w+)"', html)
        self.assertEqual(dict(bars[-4:]), {"bf16": "s0", "f32": "s1", "autocast": "eager", "compiled": "compile"})
        colours = dict((kind, rule) for kinds, rule in re.findall(r"^(\.[\w., ]+) \{ background: (var\(--\w+\)); \}", page.STYLE, re.M)
                       for kind in kinds.split(", "))
        self.assertEqual(len({colours[f".{kind}"] for kind in ("s0", "s1", "s2", "s3", "eager", "compile")}), 6)

    def test_each_panel_says_which_values_are_better(self):
        html = page.page(results())
        self.assertEqual(re.findall(r"(ms|of memcpy|%)(?:, (lower|higher) is better)?<", html.split("<details><summary>All")[0]),
                         [("ms", "lower"), ("%", ""), ("of memcpy", "higher")])
        self.assertNotIn("horter", html)
        self.assertIn("of memcpy, higher is better", table.text(results()))

    def test_bars_share_the_scale_of_their_row(self):
        html = page.page(results())
        self.assertEqual(html.count("width:100.00%"), len(sections.CASES))  # eager, the slowest of each
        self.assertEqual(html.count("width:50.00%"), len(sections.CASES))

    def test_table(self):
        text = table.text(results())
        self.assertRegex(text, r"vit_tiny +247 +494 +370 +0\.50 +0\.67\n")
        self.assertIn("WARNING: the core <Haswell> is slow", text)
        self.assertRegex(text, r"other +0\.5 +0\.5 +0\.5\n")
        self.assertRegex(text, r"8192 +0\.950 +0\.500")

    def test_numbers_have_three_digits(self):
        shown = [table.number(x) for x in (1234.5, 123.4, 12.34, 1.234, 0.1234, -1234.5)]
        self.assertEqual(shown, ["1,234", "123", "12.3", "1.23", "0.123", "-1,234"])


class Environment(unittest.TestCase):
    def warn(self, core, core_bits, cpu_bits=512, variables=None, load=0.0, products="isonorm"):
        facts = {"core": core, "core_bits": core_bits, "cpu_bits": cpu_bits, "instructions": "avx512", "products": products}
        return environment.warnings(facts, variables or {}, load)

    def test_slow_core(self):
        self.assertEqual(self.warn("SkylakeX", 512), [])
        self.assertEqual(self.warn("Haswell", 256, 256), [])
        self.assertEqual(self.warn("a core of the future", 0), [])
        chosen, = self.warn("Haswell", 256)
        self.assertIn("OpenBLAS chose the BLAS core Haswell (256-bit vectors) on a CPU with 512-bit", chosen)
        self.assertNotIn("our matrix products", chosen)
        forced, = self.warn("Prescott", 128, variables={"OPENBLAS_CORETYPE": "Prescott"}, products="OpenBLAS")
        self.assertIn("OPENBLAS_CORETYPE=Prescott forces", forced)
        self.assertIn("our matrix products", forced)

    def test_other_reasons(self):
        self.assertEqual(len(self.warn("SkylakeX", 512, variables={"ISONORM_ISA": "base"})), 1)
        self.assertEqual(len(self.warn("SkylakeX", 512, load=1.2)), 1)


class Ratios(unittest.TestCase):
    def test_ratio_is_the_median_over_the_rounds(self):
        ours, theirs = {"rounds": [[1, 9, 2], [10], [3]]}, {"rounds": [[4], [10], [2]]}
        self.assertEqual(ratio(ours, theirs), 1.0)  # of 2/4, 10/10, 3/2


class Programs(unittest.TestCase):
    def side(self, *command):
        side = Side("ours", [PROGRAMS / command[0], *command[1:], "--serve"], 1)
        self.addCleanup(side.__exit__)
        return side

    def test_kernels_knows_every_op_of_the_sections(self):
        side = self.side("kernels")
        self.assertLessEqual(set(sections.PASSES), {op for op, _, _ in sections.OPS})
        for op in {op for op, _, _ in sections.OPS + sections.FUSED} | {"linear", "rms_norm", "chain", "memcpy"}:
            answer = side.go(2, f"{op} 3 5")
            self.assertEqual([len(answer[f]) for f in ("ms", "forward_ms", "backward_ms")], [2, 2, 2], op)
            self.assertGreater(min(answer["forward_ms"]), 0, op)

    def test_a_fused_op_beside_its_composition(self):
        out = subprocess.run([PROGRAMS / "kernels", "gru_step", "3", "5", "--times", "2", "--reference"],
                             capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in out[:2]], ["gru_step 3 5", "composition of gru_step 3 5"])
        self.assertRegex(out[2], r"^fused / composition \d+\.\d{3}; BLAS core \w+$")

    def test_an_unknown_op_is_an_error_of_one_line(self):
        with self.assertRaisesRegex(Failure, 'ours: kernels: no op is called "sofmax"; there are add_norm_layer'):
            self.side("kernels").go(1, "sofmax 3 5")

    def test_what_a_gpu_alone_can_do_is_refused_of_the_cpu(self):
        for option in ("--captured", "--any-order"):
            with self.assertRaisesRegex(Failure, "^ours: step: --captured, --any-order: of a GPU alone$"):
                self.side("step", "gpt_smoke", option)

    def test_step_takes_turns(self):
        side = self.side("step", "vit_fmnist")
        works = {w: Work(side, w) for w in ("infer 1", *(f"{limit} 1" for limit in sections.LIMITS.values()))}
        results = alternate(works, 0)
        self.assertTrue(all(len(r["rounds"]) == 3 and r["median_ms"] > 0 for r in results.values()))
        profile = side.go(1, "profile train")
        self.assertLessEqual({"matmul", "norm_backward"}, set(profile["kernels"]))
        self.assertEqual(side.facts["parameters"], 1199754)
        self.assertGreater(profile["peak_bytes"], side.facts["base_bytes"])
        rounded = self.side("step", "vit_fmnist", "--activations", "bf16").go(1, "train")
        self.assertLess(rounded["peak_tensor_bytes"], 0.75 * profile["peak_tensor_bytes"])


if __name__ == "__main__":
    PROGRAMS = Path(sys.argv.pop())
    unittest.main()
