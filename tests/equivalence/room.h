// Includes and names for nearly every test of this folder: ops, models on streams.
#pragma once

#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/random.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"
#include "training/model_options.h"

namespace isonorm::equivalence {}
namespace isonorm::test {}

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::test;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using streams::Form;
using streams::Role;
using streams::Stored;
