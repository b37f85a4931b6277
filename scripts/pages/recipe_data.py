"""The data of the recipes in docs/training.md, made in the current folder: recipe_data.py ROOT (the repository's root).

  pets/cat, pets/dog   pictures of 24 x 24 pixels in folders by class: discs and crosses with noise
  more/dog, more/cat   others, fewer dogs than cats
  train.txt, val.txt   sentences of a small grammar
  gpt2/                a folder as the Hugging Face hub has it, of a GPT-2 of two narrow blocks that was trained on other sentences"""

import random
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

SIDE = 24


def png(path, pixels):
    """A PNG file of 8-bit RGB; pixels: rows of (r, g, b)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def picture(draw, is_disc):
    """A shape of any colour, place and size on a darker ground, with noise."""
    x, y, size = draw.uniform(9, 15), draw.uniform(9, 15), draw.uniform(4, 8)
    colour, ground = [draw.randint(150, 250) for _ in range(3)], draw.randint(20, 80)

    def inside(column, row):
        a, b = abs(column - x), abs(row - y)
        return a * a + b * b < size * size if is_disc else min(a, b) < size / 4 and max(a, b) < 1.5 * size
    return [[tuple(min(255, max(0, round(draw.gauss(colour[c] if inside(column, row) else ground, 12)))) for c in range(3))
             for column in range(SIDE)] for row in range(SIDE)]


def pictures(draw, folder, counts):
    for name, count in counts.items():
        Path(folder, name).mkdir(parents=True)
        for i in range(count):
            png(Path(folder, name, f"{i}.png"), picture(draw, name == "cat"))


def text(draw, sentences):
    words = {"who": ["the cat", "a dog", "my sister", "the old man", "a bird"], "how": ["quietly ", "often ", "", ""],
             "does": ["sees", "likes", "follows", "draws"], "what": ["the red house", "a small boat", "the moon", "green apples"]}
    return "".join("{who} {how}{does} {what}.\n".format(**{part: draw.choice(of) for part, of in words.items()}) for _ in range(sentences))


def hub_folder(draw, root):
    """Made by isonorm itself, since nothing may be downloaded."""
    tokenizer = Path(root, "tests/fixtures/tokenizers/gpt2")
    Path("other.txt").write_text(text(draw, 200).replace("cat", "fox").replace("moon", "sun"))
    model = "--form layer_norm --affine --tied --width 32 --depth 2 --heads 2 --context 64"
    for line in [f"tokenize {tokenizer} other.txt other.bin",
                 f"train -q --data other.bin --token-vocab 701 --tokenizer {tokenizer} {model} --batch 8 --steps 400 --lr 0.005 --checkpoint other.ckpt",
                 "export other.ckpt gpt2"]:
        subprocess.run(["isonorm", *line.split()], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(tokenizer / "tokenizer.json", "gpt2")
    for made in Path().glob("other.*"):
        made.unlink()


if __name__ == "__main__":
    source = random.Random(1)
    pictures(source, "pets", {"cat": 40, "dog": 40})
    pictures(source, "more", {"dog": 5, "cat": 15})
    Path("train.txt").write_text(text(source, 400))
    Path("val.txt").write_text(text(source, 40))
    hub_folder(source, sys.argv[1])
