"""Planted mistakes: modules of transformers and timm beside ports with one mistake."""

import torch
from torch import nn
from torch.nn import functional as F

from .right_timm import IMAGES, block_of_vit, convnext, layers, vision_transformer, vit
from .right_transformers import (
    HEADS,
    TIME,
    TOKENS,
    WIDTH,
    bert,
    bert_config,
    causal,
    encoder_layer_of_bert,
    gpt2,
    gpt2_config,
    llama,
    llama_config,
    rotary,
    transformers,
)
from .right_norms import rms_norm
from .rows import Called, Formula, Net, normal, with_random_gains, wrong


class Like(nn.Module):
    """A port of LlamaDecoderLayer with the same names, and one mistake."""

    def __init__(self, norm=rms_norm, mlp=None, turn=None, residual=True):
        super().__init__()
        config = llama_config()
        self.self_attn, self.mlp = llama.LlamaAttention(config, 0), mlp(config) if mlp else llama.LlamaMLP(config)
        self.input_layernorm, self.post_attention_layernorm = (OwnNorm(norm) for _ in range(2))
        self._turn, self._residual = turn or rotary, residual

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x), position_embeddings=self._turn(x))[0]
        y = self.post_attention_layernorm(x)
        return (x if self._residual else y) + self.mlp(y)


class OwnNorm(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.weight, self._of = nn.Parameter(torch.ones(WIDTH)), of

    def forward(self, x):
        return self._of(x, self.weight)


class OwnMlp(llama.LlamaMLP):
    def forward(self, x):
        return self.down_proj(self.gate_proj(x) * self.act_fn(self.up_proj(x)))


def other_base(x):
    angles = torch.outer(torch.arange(TIME, dtype=x.dtype), (500000.0 ** (-torch.arange(4, dtype=x.dtype) / 4)).repeat(2))
    return angles.cos()[None], angles.sin()[None]


def decoder(name, cause=None, place=None, **mistake):
    wrong(f"a port of LlamaDecoderLayer: {name}", TOKENS, cause=cause, place=place)(lambda: (with_random_gains(Like()), Like(**mistake)))


decoder("eps of 1e-5", "eps", "input_layernorm", norm=lambda x, w: rms_norm(x, w, 1e-5))
decoder("the gain plus 1", r"\+ 1", "input_layernorm", norm=lambda x, w: rms_norm(x, 1 + w))
decoder("a mean taken off", "another norm|mean", "input_layernorm", norm=lambda x, w: F.layer_norm(x, (WIDTH,), w, None, 1e-6))
decoder("gate and up exchanged", place=r"mlp\.(act_fn|gate_proj|up_proj|down_proj)", mlp=OwnMlp)
decoder("a base of 500,000", place=r"self_attn(\.o_proj)?", turn=other_base)
decoder("the normed rows on the stream", place="a itself|mlp.*", residual=False)


@wrong("a port of GPT2Block: GELU by erf", TOKENS, cause="tanh|activation", place=r".*mlp\.act")
def _():
    a = with_random_gains(Called(gpt2.GPT2Block(gpt2_config(), 0), lambda m, x: m(x, attention_mask=causal(x)[None, None])))
    b = Called(gpt2.GPT2Block(gpt2_config(), 0), lambda m, x: m(x, attention_mask=causal(x)[None, None]))
    b.module.mlp.act = nn.GELU()
    return a, b


@wrong("a port of GPT2Block: eps of 1e-6", TOKENS, cause="eps", place=r".*ln_1")
def _():
    config = gpt2_config()
    config.layer_norm_epsilon = 1e-6
    return tuple(with_random_gains(Called(gpt2.GPT2Block(c, 0), lambda m, x: m(x))) for c in (gpt2_config(), config))


@wrong("a port of BertLayer: eps of 1e-5", TOKENS, cause="eps", place=r".*LayerNorm|.*norm1", map=encoder_layer_of_bert)
def _():
    b = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, dropout=0.0, activation="gelu", batch_first=True)
    return with_random_gains(bert.BertLayer(bert_config())), b


@wrong("a port of BertLayer: norms first", TOKENS, place=".*query|.*self.*|.*norm1|.*LayerNorm.*", map=encoder_layer_of_bert)
def _():
    b = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 24, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True, norm_first=True
    )
    return with_random_gains(bert.BertLayer(bert_config())), b


@wrong("a port of BertLayer: ReLU", TOKENS, cause="relu|ReLU", place=r"intermediate.*|linear.*", map=encoder_layer_of_bert)
def _():
    b = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, dropout=0.0, activation="relu", layer_norm_eps=1e-12, batch_first=True)
    return with_random_gains(bert.BertLayer(bert_config())), b


def block(**more):
    return with_random_gains(vision_transformer.Block(WIDTH, HEADS, 1.5, qkv_bias=True, **more))


@wrong("a port of ViTLayer to timm: eps of 1e-12", TOKENS, cause="eps", place="layernorm_before|norm1", map=block_of_vit)
def _():
    config = transformers.ViTConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        intermediate_size=24,
        hidden_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    return with_random_gains(vit.ViTLayer(config)), block()


@wrong("a port of ViTLayer to timm: twice the heads", TOKENS, cause="heads", place=r"attention.*|attn.*", map=block_of_vit)
def _():
    config = transformers.ViTConfig(
        hidden_size=WIDTH,
        num_attention_heads=4,
        intermediate_size=24,
        layer_norm_eps=1e-6,
        hidden_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    return with_random_gains(vit.ViTLayer(config)), block()


@wrong("timm: LayerScale taken twice", TOKENS, place="ls1|norm2", cause="factor|gamma")
def _():
    b = block(init_values=0.1)
    b.ls1 = Twice(WIDTH)
    return block(init_values=0.1), b


class Twice(layers.LayerScale):
    def forward(self, x):
        return x * self.gamma * self.gamma


@wrong("timm: DropPath without its factor", TOKENS, cause="scale_by_keep|factor", place="drop.*")
def _():
    def net(scaled):
        return Net(
            lambda m, x: m.last(x + m.drop(m.linear(x))),
            linear=nn.Linear(WIDTH, WIDTH),
            drop=layers.DropPath(0.5, scaled),
            last=nn.Linear(WIDTH, WIDTH),
        )

    return net(True), net(False)


@wrong(
    "timm: ConvNeXtBlock with BatchNorm for LayerNorm",
    IMAGES,
    place="norm",
    map={f"mlp.fc{i}.weight": lambda p, i=i: p[f"mlp.fc{i}.weight"][:, :, None, None] for i in (1, 2)},
)
def _():
    def convnext_block(**more):
        return with_random_gains(convnext.ConvNeXtBlock(8, kernel_size=3, ls_init_value=0.5, **more))

    return convnext_block(), convnext_block(conv_mlp=True, norm_layer=nn.BatchNorm2d)


@wrong("timm: SqueezeExcite with a hard sigmoid", IMAGES, cause="of b is Hardsigmoid", place="gate")
def _():
    def net(**more):
        return with_random_gains(layers.SqueezeExcite(8, rd_channels=4, **more))

    return net(), net(gate_layer="hard_sigmoid")


@wrong("timm: patches with channels last", normal(2, 3, 8, 8), place="proj|a itself")
def _():
    a = layers.PatchEmbed(8, 4, 3, WIDTH)
    return a, Formula(a, lambda p, x: F.linear(F.unfold(x, 4, stride=4).mT, p["proj.weight"].movedim(1, -1).flatten(1), p["proj.bias"]))


@wrong("timm: patches in columns, not rows", normal(2, 3, 8, 8), place="proj|a itself|norm")
def _():
    a = layers.PatchEmbed(8, 4, 3, WIDTH)
    return a, Formula(a, lambda p, x: F.conv2d(x, p["proj.weight"], p["proj.bias"], stride=4).mT.flatten(2).mT)
