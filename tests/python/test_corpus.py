"""A share of the corpus (corpus/table.py compares all of it): no right pair is called different, every mistake is found, and no cause is wrong."""

import unittest

import pairs  # noqa: F401: skips these tests if torch is missing
from corpus.rows import RIGHT, WRONG
from corpus.table import compared, judged, runs_of


class Corpus(unittest.TestCase):
    def test_right_pairs(self):
        """Gradients of all pairs, and trainings of every tenth."""
        for i, row in enumerate(RIGHT):
            for seed, options in runs_of(row)[: 2 if i % 10 == 0 else 1]:
                with self.subTest(row.name, seed=seed):
                    r = compared(row, seed, options)
                    self.assertNotEqual(r.verdict, "different", r)
                    if "optimizer" not in options and options.get("dtype") != "f32":
                        self.assertEqual(r.verdict, "equivalent", r)

    def test_planted_mistakes(self):
        """Every second one."""
        for row in WRONG[::2]:
            with self.subTest(row.name):
                r = compared(row, 1, None)
                self.assertNotIn(judged(row, r), ("missed", "undecided", "wrong cause"), r)


if __name__ == "__main__":
    unittest.main()
