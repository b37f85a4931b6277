// Printed tensors against NumPy's output.
#include "core/print.h"

#include <limits>

#include "autograd/ops/create.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/shape.h"
#include "tests/support/catch.h"

using namespace isonorm;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Printed {
  Tensor x;
  std::string values;
};
}  // namespace

TEST_CASE("printing shows values as NumPy does, then dtype and shape") {
  // By NumPy 2.4.6: array2string(x, separator=", ").
  const std::vector<Printed> cases = {
      {from_vector<float>({1, 2, 3, 4}, {2, 2}),
       "[[1., 2.],\n"
       " [3., 4.]]"},
      {from_vector<double>({1.5}, {1}), "[1.5]"},
      {from_vector<double>({3}, {}), "3."},
      {from_vector<float>({0.1, 0.25, -3}, {3}), "[ 0.1 ,  0.25, -3.  ]"},
      {from_vector<double>({0.3333333333333333, 0.6666666666666666}, {2}), "[0.33333333, 0.66666667]"},
      {from_vector<float>({0.3333333333333333, 6.666666666666667}, {2}), "[0.33333334, 6.6666665 ]"},
      {from_vector<float>({0, 0}, {2}), "[0., 0.]"},
      {from_vector<float>({0.0001}, {1}), "[0.0001]"},
      {from_vector<double>({0.0001}, {1}), "[0.0001]"},
      {from_vector<double>({9.9e-05, 1}, {2}), "[9.9e-05, 1.0e+00]"},
      {from_vector<double>({1, 1000}, {2}), "[   1., 1000.]"},
      {from_vector<double>({1, 1001}, {2}), "[1.000e+00, 1.001e+03]"},
      {from_vector<float>({999999}, {1}), "[999999.]"},
      {from_vector<float>({1000000.0}, {1}), "[1.e+06]"},
      {from_vector<double>({99999999}, {1}), "[99999999.]"},
      {from_vector<double>({100000000.0, -25000000.0}, {2}), "[ 1.0e+08, -2.5e+07]"},
      {from_vector<float>({1.5e-07, 3, 0}, {3}), "[1.5e-07, 3.0e+00, 0.0e+00]"},
      {from_vector<double>({1e+100, -1e-05}, {2}), "[ 1.e+100, -1.e-005]"},
      {from_vector<double>({kNan, 1}, {2}), "[nan,  1.]"},
      {from_vector<float>({kInf, -kInf, kNan}, {3}), "[ inf, -inf,  nan]"},
      {from_vector<double>({kNan}, {1}), "[nan]"},
      {from_vector<double>({-kInf, 1.25, 1e-06}, {3}), "[    -inf, 1.25e+00, 1.00e-06]"},
      {from_vector<double>({-0.0, 0.5}, {2}), "[-0. ,  0.5]"},
      {from_vector<float>({5e-05, 0.001020799740217626}, {2}), "[4.9999999e-05, 1.0207997e-03]"},
      {from_vector<double>({0.123456789012, 123.456}, {2}), "[  0.12345679, 123.456     ]"},
      {from_vector<double>({1e-10, 0.30000000000000004}, {2}), "[1.e-10, 3.e-01]"},
      {from_vector<int64_t>({1, -20, 300}, {3}), "[  1, -20, 300]"},
      {from_vector<int64_t>({9007199254740993, -1}, {2}), "[9007199254740993,               -1]"},
      {from_vector<uint8_t>({1, 0, 1}, {3}), "[1, 0, 1]"},
      {from_vector<uint8_t>({255, 7}, {1, 2}), "[[255,   7]]"},
      {from_vector<float>({}, {0}), "[]"},
      {from_vector<int64_t>({}, {0, 3}), "[]"},
      {from_vector<int64_t>({7}, {}), "7"},
      {from_vector<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23},
                            {2, 3, 4}),
       "[[[ 0,  1,  2,  3],\n"
       "  [ 4,  5,  6,  7],\n"
       "  [ 8,  9, 10, 11]],\n"
       "\n"
       " [[12, 13, 14, 15],\n"
       "  [16, 17, 18, 19],\n"
       "  [20, 21, 22, 23]]]"},
      {from_vector<float>({0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5}, {2, 1, 2, 2}),
       "[[[[0. , 0.5],\n"
       "   [1. , 1.5]]],\n"
       "\n"
       "\n"
       " [[[2. , 2.5],\n"
       "   [3. , 3.5]]]]"},
      {from_vector<int64_t>({0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                             15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29},
                            {30}),
       "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
       " 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]"},
      {from_vector<double>(
           {0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
            2.0, 2.125, 2.25, 2.375, 2.5, 2.625, 2.75, 2.875, 3.0, 3.125, 3.25, 3.375, 3.5, 3.625, 3.75, 3.875},
           {2, 16}),
       "[[0.   , 0.125, 0.25 , 0.375, 0.5  , 0.625, 0.75 , 0.875, 1.   , 1.125,\n"
       "  1.25 , 1.375, 1.5  , 1.625, 1.75 , 1.875],\n"
       " [2.   , 2.125, 2.25 , 2.375, 2.5  , 2.625, 2.75 , 2.875, 3.   , 3.125,\n"
       "  3.25 , 3.375, 3.5  , 3.625, 3.75 , 3.875]]"},
      {reshape(arange(1001, {DType::f32}), {1001}), "[   0.,    1.,    2., ...,  998.,  999., 1000.]"},
      {reshape(arange(1001, {DType::i64}), {1001}), "[   0,    1,    2, ...,  998,  999, 1000]"},
      {reshape(arange(2100, {DType::i64}), {7, 300}),
       "[[   0,    1,    2, ...,  297,  298,  299],\n"
       " [ 300,  301,  302, ...,  597,  598,  599],\n"
       " [ 600,  601,  602, ...,  897,  898,  899],\n"
       " ...,\n"
       " [1200, 1201, 1202, ..., 1497, 1498, 1499],\n"
       " [1500, 1501, 1502, ..., 1797, 1798, 1799],\n"
       " [1800, 1801, 1802, ..., 2097, 2098, 2099]]"},
      {reshape(arange(1008, {DType::f64}), {7, 1, 144}),
       "[[[0.000e+00, 1.000e+00, 2.000e+00, ..., 1.410e+02, 1.420e+02, 1.430e+02]],\n"
       "\n"
       " [[1.440e+02, 1.450e+02, 1.460e+02, ..., 2.850e+02, 2.860e+02, 2.870e+02]],\n"
       "\n"
       " [[2.880e+02, 2.890e+02, 2.900e+02, ..., 4.290e+02, 4.300e+02, 4.310e+02]],\n"
       "\n"
       " ...,\n"
       "\n"
       " [[5.760e+02, 5.770e+02, 5.780e+02, ..., 7.170e+02, 7.180e+02, 7.190e+02]],\n"
       "\n"
       " [[7.200e+02, 7.210e+02, 7.220e+02, ..., 8.610e+02, 8.620e+02, 8.630e+02]],\n"
       "\n"
       " [[8.640e+02, 8.650e+02, 8.660e+02, ..., 1.005e+03, 1.006e+03, 1.007e+03]]]"},
      {reshape(arange(1200, {DType::i64}), {3, 400}),
       "[[   0,    1,    2, ...,  397,  398,  399],\n"
       " [ 400,  401,  402, ...,  797,  798,  799],\n"
       " [ 800,  801,  802, ..., 1197, 1198, 1199]]"},
      {reshape(arange(1200, {DType::i64}), {2, 6, 100}),
       "[[[   0,    1,    2, ...,   97,   98,   99],\n"
       "  [ 100,  101,  102, ...,  197,  198,  199],\n"
       "  [ 200,  201,  202, ...,  297,  298,  299],\n"
       "  [ 300,  301,  302, ...,  397,  398,  399],\n"
       "  [ 400,  401,  402, ...,  497,  498,  499],\n"
       "  [ 500,  501,  502, ...,  597,  598,  599]],\n"
       "\n"
       " [[ 600,  601,  602, ...,  697,  698,  699],\n"
       "  [ 700,  701,  702, ...,  797,  798,  799],\n"
       "  [ 800,  801,  802, ...,  897,  898,  899],\n"
       "  [ 900,  901,  902, ...,  997,  998,  999],\n"
       "  [1000, 1001, 1002, ..., 1097, 1098, 1099],\n"
       "  [1100, 1101, 1102, ..., 1197, 1198, 1199]]]"},
  };
  for (const auto& [x, values] : cases) CHECK(to_string(x) == text(values, "  ", x.dtype(), ' ', x.shape()));
}

TEST_CASE("printing: bf16 has the digits that it needs, and views print their own order") {
  CHECK(to_string(tensor({0.1f, 3.140625f, 100.f}).to(DType::bf16)) == "[  0.1 ,   3.14, 100.  ]  bf16 [3]");
  CHECK(to_string(transpose(tensor({{1, 2}, {3, 40}}), 0, 1)) == "[[ 1,  3],\n [ 2, 40]]  i64 [2, 2]");
}

TEST_CASE("print options choose the digits and the entries") {
  const struct Restored {
    ~Restored() { set_print_options({}); }
  } restored;
  const auto values = [](const Tensor& x) {
    const std::string s = to_string(x);
    return s.substr(0, s.find("  f"));
  };
  const auto sevenths = [](int64_t n) { return arange(0, static_cast<double>(n), 1, {DType::f64}) / 7; };
  // By NumPy 2: set_printoptions(precision=, threshold=, edgeitems=, linewidth=), array2string(x, separator=", ").
  set_print_options({.digits = 15});
  CHECK(values(tensor({1. / 3, 2. / 3, 1e-3})) == "[0.333333333333333, 0.666666666666667, 0.001            ]");
  set_print_options({.digits = 17});
  CHECK(values(tensor({1. / 3, 1e10})) == "[3.333333333333333e-01, 1.000000000000000e+10]");
  CHECK(values(tensor({1. / 3, .1})) == "[0.3333333333333333, 0.1               ]");
  CHECK(values(tensor({1.f / 3, .1f})) == "[0.33333334, 0.1       ]");
  set_print_options({.digits = 0});
  CHECK(values(sevenths(3)) == "[0., 0., 0.]");
  set_print_options({.digits = 2, .threshold = 5, .edge_items = 1, .line_width = 20});
  CHECK(values(tensor({1. / 3, 2. / 3, 1e-5})) == "[3.33e-01, 6.67e-01,\n 1.00e-05]");
  CHECK(values(sevenths(12).reshape({3, 4})) == "[[0.  , ..., 0.43],\n ...,\n [1.14, ..., 1.57]]");
  CHECK(values(sevenths(5)) == "[0.  , 0.14, 0.29,\n 0.43, 0.57]");
  CHECK(print_options().threshold == 5);

  CHECK_THROWS_WITH(set_print_options({.digits = 18}), "print: digits is 18, expected 0 to 17");
  CHECK_THROWS_WITH(set_print_options({.threshold = 0}),
                    "print: threshold is 0 and edge_items 3, expected numbers from 1");
  CHECK_THROWS_WITH(set_print_options({.line_width = 9}), "print: line_width is 9, expected at least 10");
  CHECK(print_options().digits == 2);
  set_print_options({});
  CHECK(values(tensor({1. / 3})) == "[0.33333333]");
}
