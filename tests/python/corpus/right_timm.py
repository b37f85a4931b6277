"""Right pairs: modules of timm, and their formulas, or modules of transformers."""

import torch
from torch import nn
from torch.nn import functional as F

from .right_attention import attention, joined, linear
from .right_transformers import HEADS, TIME, TOKENS, WIDTH, heads, normed
from .rows import Formula, Net, normal, right, same_weights, with_random_gains

import timm
import transformers
from timm import layers
from timm.layers import grn
from timm.models import convnext, vision_transformer
from transformers.models.vit import modeling_vit as vit

IMAGES = normal(2, 8, 6, 6)


def block_of_vit(p):
    """ViTLayer's parameters as those of timm's Block."""
    made = {}
    for n in "weight", "bias":
        made[f"attn.qkv.{n}"] = torch.cat([p[f"attention.{x}_proj.{n}"] for x in "qkv"])
        made[f"attn.proj.{n}"] = p[f"attention.o_proj.{n}"]
        made[f"mlp.fc1.{n}"], made[f"mlp.fc2.{n}"] = p[f"mlp.fc1.{n}"], p[f"mlp.fc2.{n}"]
        made[f"norm1.{n}"], made[f"norm2.{n}"] = p[f"layernorm_before.{n}"], p[f"layernorm_after.{n}"]
    return made


@right("transformers: ViTLayer (sdpa), and timm's Block", TOKENS, map=block_of_vit)
def _():
    config = transformers.ViTConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        intermediate_size=24,
        layer_norm_eps=1e-6,
        hidden_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    return with_random_gains(vit.ViTLayer(config)), vision_transformer.Block(WIDTH, HEADS, 1.5, qkv_bias=True)


def vit_block(p, x, scaled=False):
    q, k, v = linear(p, "attn.qkv", normed(p, "norm1", x, 1e-6)).reshape(3, TIME, 3, HEADS, 8).permute(2, 0, 3, 1, 4)
    x = x + linear(p, "attn.proj", joined(attention(q, k, v))) * p["ls1.gamma"]
    return x + linear(p, "mlp.fc2", F.gelu(linear(p, "mlp.fc1", normed(p, "norm2", x, 1e-6)))) * p["ls2.gamma"]


@right("timm: Block of a ViT with layer scale, drop path in eval", TOKENS)
def _():
    a = vision_transformer.Block(WIDTH, HEADS, 1.5, qkv_bias=True, init_values=0.1, drop_path=0.3)
    return with_random_gains(a).eval(), Formula(a, vit_block).eval()


@right("timm: VisionTransformer of two blocks, fused attention and not", normal(2, 3, 8, 8))
def _():
    a = timm.models.VisionTransformer(img_size=8, patch_size=4, embed_dim=WIDTH, depth=2, num_heads=HEADS, num_classes=5)
    b = same_weights(a)
    for block in b.blocks:
        block.attn.fused_attn = False
    return a, b


@right(
    "timm: Attention with norms of queries and keys, and separate layers",
    TOKENS,
    map={
        **{f"{x}.{n}": lambda p, i=i, n=n: p[f"qkv.{n}"].chunk(3)[i] for i, x in enumerate("qkv") for n in ("weight", "bias")},
        **{f"n{x}.{n}": f"{x}_norm.{n}" for x in "qk" for n in ("weight", "bias")},
    },
)
def _():
    def of(m, x):
        q, k, v = (heads(f(x)) for f in (m.q, m.k, m.v))
        return m.proj(joined(F.scaled_dot_product_attention(m.nq(q), m.nk(k), v)))

    norms = {f"n{x}": nn.LayerNorm(8, eps=1e-6) for x in "qk"}
    b = Net(of, **{x: nn.Linear(WIDTH, WIDTH) for x in "qkv"}, **norms, proj=nn.Linear(WIDTH, WIDTH))
    return (with_random_gains(layers.Attention(WIDTH, HEADS, qkv_bias=True, qk_norm=True, norm_layer=layers.LayerNorm)), b)


@right("timm: LayerScale, in place and not", TOKENS)
def _():
    a = nn.Sequential(nn.Linear(WIDTH, 8), layers.LayerScale(8, 0.1))
    return a, Formula(a, lambda p, x: F.linear(x, p["0.weight"] * p["1.gamma"][:, None], p["0.bias"] * p["1.gamma"]))


@right("timm: LayerScale2d in place after a convolution", IMAGES)
def _():
    def net(inplace):
        torch.manual_seed(1)
        return with_random_gains(nn.Sequential(nn.Conv2d(8, 8, 3), layers.LayerScale2d(8, 0.5, inplace=inplace)))

    return net(False), net(True)


@right("timm: DropPath in training, the same draws", TOKENS)
def _():
    def of(m, x):
        return (x + m.drop(m.linear(x)) if m.drop is not None else x + m.linear(x) * x.new_empty(3, 1, 1).bernoulli_(0.5) / 0.5)

    return Net(of, linear=nn.Linear(WIDTH, WIDTH), drop=layers.DropPath(0.5)), Net(of, linear=nn.Linear(WIDTH, WIDTH), drop=None)


@right("timm: Mlp", TOKENS)
def _():
    a = layers.Mlp(WIDTH, 24)
    return a, Formula(a, lambda p, x: linear(p, "fc2", (lambda y: y * 0.5 * (1 + torch.erf(y / 2**0.5)))(linear(p, "fc1", x))))


@right(
    "timm: SwiGLU, and SwiGLUPacked",
    TOKENS,
    map={f"fc1.{n}": lambda p, n=n: torch.cat([p[f"fc1_g.{n}"], p[f"fc1_x.{n}"]]) for n in ("weight", "bias")},
)
def _():
    return layers.SwiGLU(WIDTH, 24), layers.SwiGLUPacked(WIDTH, 48)


@right("timm: PatchEmbed as unfold and a linear layer", normal(2, 3, 8, 8))
def _():
    a = layers.PatchEmbed(8, 4, 3, WIDTH)
    return a, Formula(a, lambda p, x: F.linear(F.unfold(x, 4, stride=4).mT, p["proj.weight"].flatten(1), p["proj.bias"]))


@right(
    "timm: ConvNeXtBlock with linear layers, and with 1x1 convolutions",
    IMAGES,
    map={f"mlp.fc{i}.weight": lambda p, i=i: p[f"mlp.fc{i}.weight"][:, :, None, None] for i in (1, 2)},
)
def _():
    def block(conv):
        return convnext.ConvNeXtBlock(8, kernel_size=3, ls_init_value=0.5, conv_mlp=conv)

    return with_random_gains(block(False)), block(True)


@right("timm: GlobalResponseNorm", normal(2, 6, 6, 8))
def _():
    def of(p, x):
        size = x.square().sum((1, 2), keepdim=True).sqrt()
        return x + p["bias"] + p["weight"] * x * size / (size.mean(-1, keepdim=True) + 1e-6)

    a = with_random_gains(grn.GlobalResponseNorm(8))
    return a, Formula(a, of)


@right("timm: BatchNormAct2d in training, and BatchNorm2d before SiLU", IMAGES, map={"bn.weight": "norm.weight", "bn.bias": "norm.bias"})
def _():
    a = with_random_gains(Net(lambda m, x: m.norm(x), norm=layers.BatchNormAct2d(8, act_layer=nn.SiLU)))
    return a, Net(lambda m, x: F.silu(m.bn(x)), bn=nn.BatchNorm2d(8))


@right("timm: SqueezeExcite", IMAGES)
def _():
    def of(p, x):
        y = F.relu(F.linear(x.mean((2, 3)), p["fc1.weight"].flatten(1), p["fc1.bias"]))
        return x * torch.sigmoid(F.linear(y, p["fc2.weight"].flatten(1), p["fc2.bias"]))[:, :, None, None]

    a = layers.SqueezeExcite(8, rd_channels=4)
    return a, Formula(a, of)


@right("timm: ScaledStdConv2d", IMAGES)
def _():
    def of(p, x):
        w = p["weight"].flatten(1)
        w = (w - w.mean(1, keepdim=True)) / (w.var(1, unbiased=False, keepdim=True) + 1e-6).sqrt()
        return F.conv2d(x, (w * p["gain"].flatten(1) / 72**0.5).view_as(p["weight"]), p["bias"], padding=1)

    a = with_random_gains(layers.ScaledStdConv2d(8, 4, 3))
    return a, Formula(a, of)
