"""Right pairs: modules of transformers, and their formulas."""

import torch
from torch import nn
from torch.nn import functional as F

from .right_attention import attention, joined, linear
from .right_norms import rms_norm
from .rows import Called, Formula, Net, ids, normal, right, same_weights, several, with_random_gains

import transformers
from transformers.models.bert import modeling_bert as bert
from transformers.models.clip import modeling_clip as clip
from transformers.models.gpt2 import modeling_gpt2 as gpt2
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5 import modeling_t5 as t5

WIDTH, HEADS, TIME = 16, 2, 6
TOKENS = normal(3, TIME, WIDTH)


def heads(x, count=HEADS):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def causal(x):
    return torch.full((TIME, TIME), -torch.inf, dtype=x.dtype).triu(1)


def llama_config(attention="sdpa"):
    return transformers.LlamaConfig(
        hidden_size=WIDTH,
        intermediate_size=24,
        num_attention_heads=HEADS,
        num_key_value_heads=1,
        num_hidden_layers=2,
        vocab_size=20,
        attn_implementation=attention,
    )


def bert_config():
    return transformers.BertConfig(
        hidden_size=WIDTH,
        intermediate_size=24,
        num_attention_heads=HEADS,
        num_hidden_layers=2,
        vocab_size=20,
        max_position_embeddings=12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )


def gpt2_config(attention="eager"):
    return transformers.GPT2Config(
        n_embd=WIDTH,
        n_head=HEADS,
        n_layer=2,
        vocab_size=20,
        n_positions=12,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation=attention,
    )


def half_turn(x):
    u, v = x.chunk(2, -1)
    return torch.cat([-v, u], -1)


def angles(x):
    """Rotary angles of every position and entry of a head of 8."""
    rates = 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    return torch.outer(torch.arange(TIME, dtype=torch.float64), rates.repeat(2)).to(x.dtype)


def llama_attention(p, x, name=""):
    q, k, v = linear(p, f"{name}q_proj", x), linear(p, f"{name}k_proj", x), linear(p, f"{name}v_proj", x)
    q, k, v = heads(q), heads(k, 1), heads(v, 1)
    q, k = (y * angles(y).cos() + half_turn(y) * angles(y).sin() for y in (q, k))
    return linear(p, f"{name}o_proj", joined(attention(q, k, v, causal(x))))


def llama_mlp(p, x, name=""):
    return linear(p, f"{name}down_proj", F.silu(linear(p, f"{name}gate_proj", x)) * linear(p, f"{name}up_proj", x))


def rotary(x):
    return angles(x).cos()[None], angles(x).sin()[None]


@right("transformers: LlamaRMSNorm", TOKENS)
def _():
    a = with_random_gains(llama.LlamaRMSNorm(WIDTH))
    return a, Formula(a, lambda p, x: rms_norm(x, p["weight"]))


@right("transformers: LlamaMLP", TOKENS)
def _():
    a = llama.LlamaMLP(llama_config())
    return a, Formula(a, llama_mlp)


@right("transformers: LlamaAttention (sdpa), grouped, with rotary positions", TOKENS)
def _():
    a = Called(llama.LlamaAttention(llama_config(), 0), lambda m, x: m(x, position_embeddings=rotary(x))[0])
    return a, Formula(a, llama_attention)


@right("transformers: LlamaAttention (eager) and LlamaRotaryEmbedding", TOKENS)
def _():
    def of(m, x):
        return m.attention(x, position_embeddings=m.rotary(x, torch.arange(TIME)[None]), attention_mask=causal(x)[None, None])[0]

    config = llama_config("eager")
    a = Net(of, attention=llama.LlamaAttention(config, 0), rotary=llama.LlamaRotaryEmbedding(config))
    return a, Formula(a, lambda p, x: llama_attention(p, x, "attention."))


@right("transformers: LlamaDecoderLayer", TOKENS)
def _():
    def of(p, x):
        x = x + llama_attention(p, rms_norm(x, p["input_layernorm.weight"]), "self_attn.")
        return x + llama_mlp(p, rms_norm(x, p["post_attention_layernorm.weight"]), "mlp.")

    layer = with_random_gains(llama.LlamaDecoderLayer(llama_config(), 0))
    a = Called(layer, lambda m, x: m(x, position_embeddings=rotary(x)))
    return a, Formula(a, of)


@right("transformers: LlamaForCausalLM, its loss, and the formula", ids(20, 3, TIME), loss=None)
def _():
    def of(p, i):
        x = F.embedding(i, p["model.embed_tokens.weight"])
        for layer in "model.layers.0.", "model.layers.1.":
            x = x + llama_attention(p, rms_norm(x, p[f"{layer}input_layernorm.weight"]), f"{layer}self_attn.")
            x = x + llama_mlp(p, rms_norm(x, p[f"{layer}post_attention_layernorm.weight"]), f"{layer}mlp.")
        scores = linear(p, "lm_head", rms_norm(x, p["model.norm.weight"]))
        return scores, F.cross_entropy(scores[:, :-1].flatten(0, 1), i[:, 1:].flatten())

    def called(m, i):
        out = m(input_ids=i, labels=i, use_cache=False)
        return out.logits, out.loss

    a = Called(with_random_gains(transformers.LlamaForCausalLM(llama_config())), called)
    return a, Formula(a, of)


def gpt2_block(conv, norm, p, x):
    q, k, v = (heads(y) for y in conv(p, "attn.c_attn", norm(p, "ln_1", x)).chunk(3, -1))
    x = x + conv(p, "attn.c_proj", joined(attention(q, k, v, causal(x))))
    return x + conv(p, "mlp.c_proj", F.gelu(conv(p, "mlp.c_fc", norm(p, "ln_2", x)), approximate="tanh"))


def normed(p, name, x, eps=1e-5):
    return F.layer_norm(x, (x.shape[-1],), p[f"{name}.weight"], p[f"{name}.bias"], eps)


@right("transformers: GPT2Block, its Conv1D products", TOKENS)
def _():
    a = with_random_gains(Called(gpt2.GPT2Block(gpt2_config(), 0), lambda m, x: m(x, attention_mask=causal(x)[None, None])))
    return a, Formula(a, lambda p, x: gpt2_block(lambda p, n, x: x @ p[f"{n}.weight"] + p[f"{n}.bias"], normed, p, x))


def transposed(name):
    return lambda p: p[name].T


@right(
    "transformers: GPT2MLP, Conv1D as Linear by a map",
    TOKENS,
    map={
        "one.weight": transposed("c_fc.weight"),
        "one.bias": "c_fc.bias",
        "two.weight": transposed("c_proj.weight"),
        "two.bias": "c_proj.bias",
    },
)
def _():
    b = Net(lambda m, x: m.two(m.act(m.one(x))), one=nn.Linear(WIDTH, 24), act=nn.GELU("tanh"), two=nn.Linear(24, WIDTH))
    return gpt2.GPT2MLP(24, gpt2_config()), b


@right("transformers: GPT2LMHeadModel with tied words, and with gradient checkpointing", ids(20, 3, TIME))
def _():
    a = transformers.GPT2LMHeadModel(gpt2_config()).train()
    b = same_weights(a)
    b.gradient_checkpointing_enable()
    return tuple(Called(m, lambda m, i: m(input_ids=i, use_cache=False).logits) for m in (a, b))


@right("transformers: BertSelfAttention with a mask of pads", several(TOKENS, lambda g: torch.arange(TIME) < torch.tensor([[6], [4], [2]])))
def _():
    def bias(x, real):
        return torch.zeros(real.shape).to(x).masked_fill(~real, torch.finfo(x.dtype).min)[:, None, None]

    def of(p, x, real):
        q, k, v = (heads(linear(p, n, x)) for n in ("query", "key", "value"))
        return joined((q @ k.mT / 8**0.5).masked_fill(~real[:, None, None], -torch.inf).softmax(-1) @ v)

    a = Called(bert.BertSelfAttention(bert_config()), lambda m, x, real: m(x, bias(x, real))[0])
    return a, Formula(a, of)


def encoder_layer_of_bert(p):
    """BertLayer's parameters as those of nn.TransformerEncoderLayer."""
    made = {}
    for n in "weight", "bias":
        made[f"self_attn.in_proj_{n}"] = torch.cat([p[f"attention.self.{x}.{n}"] for x in ("query", "key", "value")])
        made[f"self_attn.out_proj.{n}"] = p[f"attention.output.dense.{n}"]
        made[f"linear1.{n}"], made[f"linear2.{n}"] = p[f"intermediate.dense.{n}"], p[f"output.dense.{n}"]
        made[f"norm1.{n}"], made[f"norm2.{n}"] = p[f"attention.output.LayerNorm.{n}"], p[f"output.LayerNorm.{n}"]
    return made


@right("transformers: BertLayer, and TransformerEncoderLayer of torch", TOKENS, map=encoder_layer_of_bert)
def _():
    b = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
    return with_random_gains(bert.BertLayer(bert_config())), b


@right("transformers: BertEmbeddings", ids(20, 3, TIME))
def _():
    def of(p, i):
        words = torch.cat(
            [p["word_embeddings.weight"][:1].detach(), p["word_embeddings.weight"][1:]]
        )  # the pad does not train
        x = F.one_hot(i, 20).to(words) @ words
        return normed(p, "LayerNorm", x + p["position_embeddings.weight"][:TIME] + p["token_type_embeddings.weight"][0], 1e-12)

    a = with_random_gains(bert.BertEmbeddings(bert_config()))
    return a, Formula(a, of)


@right("transformers: T5LayerNorm", TOKENS)
def _():
    a = with_random_gains(t5.T5LayerNorm(WIDTH))
    return a, Formula(a, lambda p, x: rms_norm(x, p["weight"]))


@right("transformers: T5DenseGatedActDense", TOKENS)
def _():
    a = t5.T5DenseGatedActDense(transformers.T5Config(d_model=WIDTH, d_ff=24, dropout_rate=0.0, feed_forward_proj="gated-gelu"))
    return a, Formula(a, lambda p, x: linear(p, "wo", F.gelu(linear(p, "wi_0", x), approximate="tanh") * linear(p, "wi_1", x)))


@right("transformers: CLIPMLP, its quick GELU", TOKENS)
def _():
    a = clip.CLIPMLP(transformers.CLIPTextConfig(hidden_size=WIDTH, intermediate_size=24))
    return a, Formula(a, lambda p, x: linear(p, "fc2", (lambda y: y / (1 + torch.exp(-1.702 * y)))(linear(p, "fc1", x))))
