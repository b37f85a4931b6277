// The part of isonorm that the labs use. <isonorm/isonorm.h> is the whole, and compiles three times as long.
#pragma once

#include <isonorm/autograd/engine.h>
#include <isonorm/autograd/gradcheck.h>
#include <isonorm/autograd/methods.h>
#include <isonorm/autograd/ops/create.h>
#include <isonorm/autograd/ops/index.h>
#include <isonorm/autograd/ops/loss.h>
#include <isonorm/autograd/ops/matmul.h>
#include <isonorm/autograd/ops/norm.h>
#include <isonorm/autograd/ops/pointwise.h>
#include <isonorm/autograd/ops/random.h>
#include <isonorm/autograd/ops/reduce.h>
#include <isonorm/autograd/ops/shape.h>
#include <isonorm/core/print.h>
#include <isonorm/core/random.h>
#include <isonorm/core/system/parallel.h>
#include <isonorm/core/view.h>
#include <isonorm/streams/stream.h>
