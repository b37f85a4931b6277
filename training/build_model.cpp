#include "training/build_model.h"

#include "training/from_outside.h"
#include "training/model_options.h"

namespace isonorm::training {

std::unique_ptr<nn::Module> build_model(const TrainingOptions& o, const streams::StreamOptions& stream) {
  check_rows(o);
  std::unique_ptr<nn::Module> model = o.model.make(stream);
  check(model != nullptr, "model: the row ", o.model.row().name, " made none");
  model->to(o.dtype);
  model->to(o.device);
  return model;
}

}  // namespace isonorm::training
