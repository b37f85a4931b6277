// Includes for most tests of tensors and models: the graph, the ops, and comparison of results.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "tests/support/compare.h"
#include "tests/support/same_bytes.h"
