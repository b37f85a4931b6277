// The row of nn::Vit.
#include "nn/vit.h"

#include "core/dims.h"
#include "training/model_row.h"

namespace isonorm::training {
namespace {

struct Vit {
  using Module = nn::Vit;

  static void fields(nn::VitOptions& m, Fields& f) {
    f.group = "Model";
    auto& [image, channels, patch, classes, mean_pool, cls_position, transformer] = m;
    f("image", image,
      "side of the images in pixels. Pictures of a folder are cropped and scaled to it; other data sets have sizes of "
      "their own",
      from(1));
    f("channels", channels, "", from(1)), f("classes", classes, "", from(1));
    f("patch", patch, "side of a patch in pixels", from(1));
    f("mean_pool", mean_pool, "average pooling before the last norm instead of a class token");
    f("cls_position", cls_position, "the class token has a learned position, too");
  }
  static int64_t stream_rows(const nn::VitOptions& m) {
    const auto mul = [](int64_t a, int64_t b) { return checked_mul(a, b, "model file: size"); };
    const auto add = [](int64_t a, int64_t b) { return checked_add(a, b, "model file: size"); };
    check(m.image > 0 && m.patch > 0 && m.channels > 0, "model file: images of ", m.image, " x ", m.image, " x ",
          m.channels, " in patches of ", m.patch, " are not possible");
    const int64_t side = m.image / m.patch;
    return add(m.classes, add(mul(side, side), mul(mul(m.patch, m.patch), m.channels)));
  }
  static bool enters(std::string_view name, const nn::VitOptions&) { return name == "patch.bias" || name == "cls"; }
};

}  // namespace

constinit const ModelRow kVit =
    row_of<Vit>({.name = "vit", .title = "ViT", .noun = "Vision Transformer", .input = Input::images});

}  // namespace isonorm::training
