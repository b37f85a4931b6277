// Umbrella header: the whole public interface.
#pragma once

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/print.h"
#include "core/tensor.h"
#include "data/fashion_mnist.h"
#include "data/loader.h"
#include "data/text.h"
