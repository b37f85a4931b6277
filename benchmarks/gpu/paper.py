"""`scripts/gpu paper`: inference and training by form of the stream, as 2305.14858 reports them, ours beside the paper's.

The paper's figures are medians on an A100 with PyTorch 2.0, as multiples of Pre-LN's time: table 3 is an average over six
ViTs and six batch sizes, its figure 4b a training step, its figure 5 one text of 512 tokens.
"""

import statistics
from contextlib import ExitStack

from run import LEAST
from sections import group, row
from sides import Failure, Work, alternate

FORMS = {"no norm": "none", "Pre-LN": "layer_norm", "Pre-RMSNorm": "rms_norm", "Pre-CRMSNorm": "crms_norm"}
VITS = {"Tiny": "vit_tiny", "Small": "vit_small", "Base": "vit_base", "Large": "vit_large", "Huge": "vit_huge", "Giant": "vit_giant"}
GPTS = {"Small": "gpt3_small", "Medium": "gpt3_medium", "Large": "gpt3_large", "XL": "gpt3_xl"}
BATCHES = [1, 4, 16, 64, 256, 1024]
TRAINED = {"Tiny": 512, "Small": 512, "Base": 512, "Large": 256, "Huge": 64, "Giant": 64}  # batches of the paper's code
TABLE_3 = {"no norm": 0.8567, "Pre-LN": 1.0, "Pre-RMSNorm": 0.9699, "Pre-CRMSNorm": 0.9783}  # amp
FIGURE_4B = {"Tiny": (0.977, 0.983), "Small": (0.977, 0.996), "Base": (0.983, 0.984), "Large": (0.991, 0.994),
             "Huge": (0.986, 0.986), "Giant": (0.989, 0.989)}
FIGURE_5 = {"Small": (0.86, 0.90, 0.89), "Medium": (0.95, 0.97, 0.96), "Large": (0.94, 0.95, 0.95), "XL": (1.0, 1.0, 1.0)}


def by_form(self, stack, case, forms, precision, *arguments):
    return {name: stack.enter_context(self.ours("step", case, "--no-affine", precision, "bf16", "--form", FORMS[name], *arguments))
            for name in forms}


def measured(self, what, sides, words, seconds):
    results = alternate({n: Work(s, words) for n, s in sides.items()}, 0 if self.options.tiny else seconds, rounds=3 if self.options.tiny else None)
    self.raw[what] = results
    return row(what, results, base="Pre-LN", inverse=True)


def said(values):
    return "paper: " + ", ".join(f"{name} {value:g}" for name, value in values.items())


def vit_inference(self):
    title = "Table 3: inference of ViTs"
    for size, case in ({"smoke": "vit_smoke"} if self.options.tiny else VITS).items():
        with self.part(f"ViT {size}, inference", 25) as go, ExitStack() as stack:
            if not go:
                continue
            sides = by_form(self, stack, case, FORMS, "--dtype", "--batch", "1")
            for batch in ([1, 4] if self.options.tiny else BATCHES):
                try:
                    made = measured(self, f"ViT {size}, batch {batch}", sides, f"infer {batch}", 1)
                except Failure as why:  # for example too little memory; larger batches will not fit either
                    if self.left() < LEAST:
                        raise
                    self.failed(f"ViT {size}, batch {batch}", str(why))
                    break
                self.add(group(title, "ms", [made], list(FORMS), "{} / Pre-LN", decimals=3,
                               note="bf16; the paper: an A100 with autocast, averaged over six sizes and batches 1 to 1024."))
    rows = [row for row in (self.group(title) or {"rows": []})["rows"] if row["ratios"]]
    if rows:
        average = {name: statistics.mean(row["ratios"].get(name, 1.0) for row in rows) for name in FORMS}
        self.add(group(title + ", on average", "of Pre-LN's", [dict(name="all sizes and batches", values=average, ratios={}, aim=None,
                                                                    detail=said(TABLE_3))], list(FORMS), decimals=3))


def vit_training(self):
    forms = ["Pre-LN", "Pre-RMSNorm", "Pre-CRMSNorm"]
    for size, case in ({"smoke": "vit_smoke"} if self.options.tiny else VITS).items():
        batch = 2 if self.options.tiny else TRAINED[size]
        with self.part(f"ViT {size}, training", 25) as go, ExitStack() as stack:
            if not go:
                continue
            sides = by_form(self, stack, case, forms, "--precision", "--batch", str(batch))
            made = measured(self, f"ViT {size}, batch {batch}, training", sides, "train", 4)
            if size in FIGURE_4B:
                made["detail"] = said(dict(zip(forms[1:], FIGURE_4B[size])))
            self.add(group("Figure 4b: training of ViTs", "ms", [made], forms, "{} / Pre-LN",
                           note="f32 parameters, products in bf16, one device; the paper: four A100, autocast."))


def gpt_inference(self):
    for size, case in ({"smoke": "gpt_smoke"} if self.options.tiny else GPTS).items():
        with self.part(f"GPT-3 {size}, inference", 20) as go, ExitStack() as stack:
            if not go:
                continue
            made = measured(self, f"GPT-3 {size}", by_form(self, stack, case, FORMS, "--dtype", "--batch", "1"), "infer 1", 3)
            if size in FIGURE_5:
                made["detail"] = said(dict(zip(("no norm", "Pre-RMSNorm", "Pre-CRMSNorm"), FIGURE_5[size])))
            self.add(group("Figure 5: inference of GPT-3, one text of 512 tokens", "ms", [made], list(FORMS), "{} / Pre-LN", note="bf16."))


PARTS = {"gpt": gpt_inference, "training": vit_training, "inference": vit_inference}


def leg(self):
    self.need_device()
    self.run_parts(PARTS)
