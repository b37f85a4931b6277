#include "training/build_model.h"

#include "training/from_outside.h"
#include "training/model_options.h"

namespace isonorm::training {

std::unique_ptr<nn::Module> build_model(const TrainingOptions& o, const ModelShape& shape,
                                        const streams::Stream& stream) {
  check_rows(o);
  std::unique_ptr<nn::Module> model = ModelOptions(o, shape, stream).make();
  check(model != nullptr, "model: the row ", o.model->name, " made none");
  model->to(o.dtype);
  model->to(o.device);
  return model;
}

}  // namespace isonorm::training
