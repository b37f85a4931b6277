// Internal: a manifest as JSON.
#pragma once

#include "io/json_text.h"
#include "train/records/manifest.h"

namespace isonorm::train {

json manifest_json(const Manifest& manifest);

}  // namespace isonorm::train
