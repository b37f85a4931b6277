#include "nn/vit.h"

#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "nn/init.h"

namespace isonorm::nn {
namespace {

VitOptions complete(VitOptions o) {
  check(o.image > 0 && o.channels > 0 && o.patch > 0 && o.classes > 0 && o.image % o.patch == 0, "vit: images of ",
        o.image, " x ", o.image, " x ", o.channels, " do not divide into patches of ", o.patch);
  o.transformer = o.transformer.complete();
  return o;
}

// Number of rows of the position table for the class token: 0 or 1.
int64_t cls_positions(const VitOptions& o) { return o.cls_position && !o.mean_pool ? 1 : 0; }

}  // namespace

Vit::Vit(const VitOptions& o)
    : options(complete(o)),
      patch_(add("patch", Linear(o.patch * o.patch * o.channels, o.transformer.width, {.bias = o.transformer.bias}))),
      position_(add_parameter(
          "position",
          o.transformer.positions != Positions::learned
              ? Tensor()
              : init::normal({(o.image / o.patch) * (o.image / o.patch) + cls_positions(o), o.transformer.width}, 0,
                             1))),
      cls_(add_parameter("cls", o.mean_pool ? Tensor() : init::normal({o.transformer.width}, 0, 1))),
      blocks_(add("blocks", TransformerStack(options.transformer))),
      norm_(add("norm", o.transformer.connection.last(o.transformer.width, o.transformer.last_norm()))),
      head_(add("head", Linear(o.transformer.width, o.classes, {.bias = o.transformer.bias}))) {
  options.transformer.initialise(*this);
}

Tensor Vit::forward(const Tensor& images) {
  check(images.rank() == 4 && images.size(1) == options.image && images.size(2) == options.image &&
            images.size(3) == options.channels,
        "vit: images have shape ", images.shape(), ", expected [n, ", options.image, ", ", options.image, ", ",
        options.channels, "]");
  const MixedPrecision& precision = options.transformer.precision;
  const Tensor patches = patchify(images.to(precision.branch_dtype(images.dtype())), options.patch);
  Tensor tokens = patch_(patches).to(patch_.weight.dtype());
  const bool cls_has_position = cls_positions(options) > 0;
  if (position_.defined() && !cls_has_position) tokens = tokens + position_();
  if (cls_.defined()) {
    const Tensor row = expand(cls_(), {images.size(0), 1, tokens.size(-1)});
    tokens = cat({row, tokens}, 1);
  }
  if (position_.defined() && cls_has_position) tokens = tokens + position_();
  Residual r{tokens.to(precision.residual_dtype(tokens.dtype())), {}};
  blocks_(r);
  r.each([&](Tensor& x) { x = options.mean_pool ? mean(x, {1}) : select(x, 1, 0); });
  return head_(norm_.rows(r)).to(head_.weight.dtype());
}

VitOptions vit_preset(std::string_view name) {
  struct Size {
    std::string_view name;
    int64_t width, heads, depth, mlp, patch;
  };
  constexpr Size sizes[] = {{"tiny", 192, 3, 12, 768, 16},    {"small", 384, 6, 12, 1536, 16},
                            {"base", 768, 12, 12, 3072, 16},  {"large", 1024, 16, 24, 4096, 16},
                            {"huge", 1280, 16, 32, 5120, 14}, {"giant", 1664, 16, 48, 8192, 14},
                            {"22b", 6144, 48, 48, 24576, 14}};
  for (const Size& s : sizes)
    if (s.name == name)
      return {.image = 224,
              .channels = 3,
              .patch = s.patch,
              .classes = 1000,
              .transformer = {.width = s.width, .depth = s.depth, .heads = s.heads, .mlp_width = s.mlp}};
  check(false, "vit_preset: no size is called '", name, "'; there are tiny, small, base, large, huge, giant, 22b");
  return {};
}

}  // namespace isonorm::nn
