// Includes and names for the tests of this folder: tensors, ops, the graph.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autograd/checkpoint.h"
#include "autograd/engine.h"
#include "autograd/fused/attention.h"
#include "autograd/fused/linear_cross_entropy.h"
#include "autograd/fused/mlp.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/methods.h"
#include "autograd/node.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/ops.h"
#include "tests/support/random.h"
#include "tests/support/thrown.h"

using namespace isonorm;
using Catch::Matchers::Contains;
