// Internal: a manifest as JSON.
#pragma once

#include "io/json_text.h"
#include "training/records/manifest.h"

namespace isonorm::training {

json manifest_json(const Manifest& manifest);

}  // namespace isonorm::training
