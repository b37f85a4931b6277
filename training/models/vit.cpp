// The row of nn::Vit.
#include "nn/vit.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Vit final : ConfigOf<Vit, nn::Vit> {
  void fields(Fields& f) override {
    f.group = "Model";
    auto& [image, channels, patch, classes, mean_pool, cls_position, transformer] = options;
    f("image", image,
      "side of the images in pixels. Pictures of a folder are cropped and scaled to it; other data sets have sizes of "
      "their own",
      from(1), kInBoth);
    f("channels", channels, "", from(1), kInBoth);
    f("classes", classes, "", from(1), kInBoth);
    f("patch", patch, "side of a patch in pixels", from(1), kInBoth);
    f("mean_pool", mean_pool, "average pooling before the last norm instead of a class token", {}, kInBoth);
    f("cls_position", cls_position, "the class token has a learned position, too", {}, kInOnnx);
  }
  int64_t stream_rows() const override {
    const auto mul = [](int64_t a, int64_t b) { return checked_mul(a, b, "model file: size"); };
    const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
    check(options.image > 0 && options.patch > 0 && options.channels > 0, "model file: images of ", options.image,
          " x ", options.image, " x ", options.channels, " in patches of ", options.patch, " are not possible");
    const int64_t side = options.image / options.patch;
    return add(options.classes, add(mul(side, side), mul(mul(options.patch, options.patch), options.channels)));
  }
  bool enters(std::string_view name) const override { return name == "patch.bias" || name == "cls"; }
};

}  // namespace

constinit const ModelRow kVit =
    row_of<Vit>({.name = "vit", .title = "ViT", .noun = "Vision Transformer", .input = Input::images});

}  // namespace isonorm::training
