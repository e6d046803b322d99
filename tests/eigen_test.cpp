// Views of Eigen's types: against the same memory seen through a pointer, and what must not compile.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cstring>
#include <rotary/eigen.hpp>  // before the Tensor header, which it must not need
#include <rotary/rotary.hpp>
#include <string>
#include <type_traits>
#include <unsupported/Eigen/CXX11/Tensor>
#include <utility>
#include <vector>

#include "reference.hpp"
#include "refusals.hpp"

namespace {

using Eigen::Dynamic;
using refusals::expect_refused;
using rotary::tensor_view;

template <class T>
using row_major = Eigen::Matrix<T, Dynamic, Dynamic, Eigen::RowMajor>;
template <class T>
using column_major = Eigen::Matrix<T, Dynamic, Dynamic>;
template <class T, int Rank>
using tensor = Eigen::Tensor<T, Rank, Eigen::RowMajor>;
using strides = Eigen::Stride<Dynamic, Dynamic>;

// ---- what compiles, and into which type of view

template <class X, class = void>
struct matrix_view_of {
  using type = void;
};
template <class X>
struct matrix_view_of<X, std::void_t<decltype(rotary::view(std::declval<X>(), 2))>> {
  using type = decltype(rotary::view(std::declval<X>(), 2));
};
template <class X, class = void>
struct tensor_view_of {
  using type = void;
};
template <class X>
struct tensor_view_of<X, std::void_t<decltype(rotary::view(std::declval<X>()))>> {
  using type = decltype(rotary::view(std::declval<X>()));
};

template <class X, class View>
constexpr bool matrix_gives = std::is_same<typename matrix_view_of<X>::type, View>::value;
template <class X, class View>
constexpr bool tensor_gives = std::is_same<typename tensor_view_of<X>::type, View>::value;
template <class X>
constexpr bool nothing_of_matrix = matrix_gives<X, void>;
template <class X>
constexpr bool nothing_of_tensor = tensor_gives<X, void>;

static_assert(matrix_gives<row_major<float>&, tensor_view<float>>);
static_assert(matrix_gives<const row_major<float>&, tensor_view<const float>>);
static_assert(matrix_gives<Eigen::Array<double, 4, 8, Eigen::RowMajor>&, tensor_view<double>>);
static_assert(matrix_gives<Eigen::RowVectorXf&, tensor_view<float>>, "one token");
static_assert(matrix_gives<Eigen::Map<row_major<Eigen::half>>&, tensor_view<Eigen::half>>);
static_assert(matrix_gives<Eigen::Map<row_major<float>>, tensor_view<float>>, "a temporary map owns nothing");
static_assert(matrix_gives<Eigen::Map<const row_major<float>>, tensor_view<const float>>);
static_assert(matrix_gives<const Eigen::Map<row_major<float>>&, tensor_view<const float>>);
static_assert(matrix_gives<Eigen::Ref<row_major<float>>&, tensor_view<float>>);
static_assert(matrix_gives<const Eigen::Ref<const row_major<float>>&, tensor_view<const float>>);
static_assert(matrix_gives<decltype(std::declval<row_major<float>&>().middleCols(0, 4)), tensor_view<float>>);
static_assert(matrix_gives<decltype(std::declval<column_major<float>&>().transpose()), tensor_view<float>>);

static_assert(nothing_of_matrix<row_major<float>>, "a temporary matrix dies before its view");
static_assert(nothing_of_matrix<const row_major<float>>, "so does a const one");
static_assert(nothing_of_matrix<Eigen::Ref<const row_major<float>>>, "it may hold a copy");
static_assert(nothing_of_matrix<decltype(std::declval<row_major<float>&>() + std::declval<row_major<float>&>())>);
static_assert(nothing_of_matrix<decltype(2.0f * std::declval<row_major<float>&>())>);
static_assert(nothing_of_matrix<decltype(std::declval<row_major<float>&>() * std::declval<row_major<float>&>())>);
static_assert(nothing_of_matrix<column_major<float>&>, "channels of a token lie a column apart");
static_assert(nothing_of_matrix<Eigen::VectorXf&>);
static_assert(nothing_of_matrix<decltype(std::declval<row_major<float>&>().transpose())>);
static_assert(nothing_of_matrix<Eigen::Map<row_major<float>, 0, Eigen::InnerStride<2>>&>);
static_assert(nothing_of_matrix<std::vector<float>&>);
static_assert(nothing_of_matrix<tensor<float, 3>&>, "the number of heads is in the tensor");

static_assert(tensor_gives<tensor<float, 4>&, tensor_view<float>>);
static_assert(tensor_gives<tensor<Eigen::bfloat16, 3>&, tensor_view<Eigen::bfloat16>>);
static_assert(tensor_gives<const tensor<float, 4>&, tensor_view<const float>>);
static_assert(tensor_gives<Eigen::TensorMap<tensor<float, 3>>, tensor_view<float>>, "a temporary map owns nothing");
static_assert(tensor_gives<Eigen::TensorMap<tensor<float, 3>>&, tensor_view<float>>);
static_assert(tensor_gives<const Eigen::TensorMap<tensor<float, 3>>&, tensor_view<const float>>);
static_assert(tensor_gives<Eigen::TensorMap<const tensor<double, 4>>, tensor_view<const double>>);
static_assert(tensor_gives<Eigen::TensorFixedSize<float, Eigen::Sizes<5, 2, 8>, Eigen::RowMajor>&, tensor_view<float>>);

static_assert(nothing_of_tensor<tensor<float, 4>>, "a temporary tensor dies before its view");
static_assert(nothing_of_tensor<Eigen::Tensor<float, 4>&>, "column-major keeps the first index dense");
static_assert(nothing_of_tensor<Eigen::TensorMap<Eigen::Tensor<float, 3>>&>);
static_assert(nothing_of_tensor<tensor<float, 2>&>, "rank 2 does not say how many heads");
static_assert(nothing_of_tensor<tensor<float, 5>&>);
static_assert(nothing_of_tensor<decltype(std::declval<tensor<float, 4>&>() + std::declval<tensor<float, 4>&>())>);
static_assert(nothing_of_tensor<row_major<float>&>, "a matrix does not say how many heads");

// ---- results: bit for bit those of a pointer to the same numbers

constexpr Eigen::Index tokens = 5, heads = 3, head_dim = 10, columns = heads * head_dim;
const std::vector<std::int64_t> ids = {7, 0, -3, 70000, 8};
const rotary::layout how(rotary::pairing::interleaved, 1);

rotary::step_table<float> step_of(std::size_t count) {
  rotary::step_table<float> step(rotary::make_spectrum(8, 10000.0));
  step.assign(ids.data(), count);
  return step;
}

template <class T>
void rotate(const tensor_view<T>& view) {
  rotary::rotate(view, step_of(view.tokens), how);
}

// Numbers for [tokens, heads, head_dim], and what they become when they are rotated as the library's own type.
template <class T>
struct sample {
  std::vector<T> x, expected;
  Eigen::Map<const row_major<T>> before;

  sample() : x(static_cast<std::size_t>(tokens * columns)), before(x.data(), tokens, columns) {
    reference::random_bits random(11);
    for (T& value : x) value = static_cast<T>(static_cast<float>(random.next_unit()));
    expected = x;
    rotate(rotary::thd(reinterpret_cast<rotary::format_of<T>*>(expected.data()), tokens, heads, head_dim));
    EXPECT_NE(std::memcmp(x.data(), expected.data(), x.size() * sizeof(T)), 0);
  }
};

template <class T>
struct EveryScalar : testing::Test {};
using scalars = testing::Types<float, double, Eigen::half, Eigen::bfloat16>;
struct names_of_scalars {
  template <class T>
  static std::string GetName(int) {
    return sizeof(T) == 8 ? "double" : sizeof(T) == 4 ? "float" : std::is_same_v<T, Eigen::half> ? "half" : "bfloat16";
  }
};
TYPED_TEST_SUITE(EveryScalar, scalars, names_of_scalars);

// Whether element (row, column) of x is the one at row * columns + column of `expected`, by its bits.
template <class Matrix, class T>
void expect_elements(const Matrix& x, const std::vector<T>& expected) {
  ASSERT_EQ(static_cast<std::size_t>(x.rows() * x.cols()), expected.size());
  std::size_t different = 0;
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const T got = x(r, c);
      different += std::memcmp(&got, &expected[static_cast<std::size_t>(r * x.cols() + c)], sizeof(T)) != 0;
    }
  }
  EXPECT_EQ(different, 0u) << "of " << expected.size() << " elements";
}

TYPED_TEST(EveryScalar, MatrixArrayAndMap) {
  using T = TypeParam;
  sample<T> s;
  row_major<T> matrix = s.before;
  Eigen::Array<T, Dynamic, Dynamic, Eigen::RowMajor> array = s.before.array();
  Eigen::Matrix<T, 5, 30, Eigen::RowMajor> fixed = s.before;
  rotate(rotary::view(matrix, heads));
  rotate(rotary::view(array, heads));
  rotate(rotary::view(fixed, 3));
  expect_elements(matrix, s.expected);
  expect_elements(array, s.expected);
  expect_elements(fixed, s.expected);
  rotate(rotary::view(Eigen::Map<row_major<T>>(s.x.data(), tokens, columns), heads));
  expect_elements(s.before, s.expected);
}

TYPED_TEST(EveryScalar, BlocksAndMapsWithStrides) {
  using T = TypeParam;
  sample<T> s;
  row_major<T> wide = row_major<T>::Zero(tokens + 2, columns + 7);
  wide.block(1, 4, tokens, columns) = s.before;
  rotate(rotary::view(wide.block(1, 4, tokens, columns), heads));
  expect_elements(wide.block(1, 4, tokens, columns), s.expected);
  wide.block(1, 4, tokens, columns).setZero();
  EXPECT_TRUE(wide.isZero(T(0))) << "written beside the block";

  std::vector<T> memory(static_cast<std::size_t>(tokens * 40), T(0));
  Eigen::Map<row_major<T>, 0, Eigen::OuterStride<>> far_rows(memory.data(), tokens, columns, Eigen::OuterStride<>(40));
  far_rows = s.before;
  rotate(rotary::view(far_rows, heads));
  expect_elements(far_rows, s.expected);

  // Column-major by its type, with strides that make the columns adjacent.
  Eigen::Map<column_major<T>, 0, strides> swapped(memory.data(), tokens, columns, strides(1, 40));
  swapped = s.before;
  rotate(rotary::view(swapped, heads));
  expect_elements(swapped, s.expected);
}

TYPED_TEST(EveryScalar, TransposeOfAMatrixWithAColumnPerToken) {
  using T = TypeParam;
  sample<T> s;
  column_major<T> matrix = s.before.transpose();
  rotate(rotary::view(matrix.transpose(), heads));
  expect_elements(matrix.transpose(), s.expected);
}

TYPED_TEST(EveryScalar, FunctionThatTakesARef) {
  using T = TypeParam;
  sample<T> s;
  row_major<T> matrix = s.before;
  const auto function = [&](Eigen::Ref<row_major<T>> q) { rotate(rotary::view(q, heads)); };
  function(matrix);
  expect_elements(matrix, s.expected);
}

TYPED_TEST(EveryScalar, TensorsOfRank3And4) {
  using T = TypeParam;
  sample<T> s;
  tensor<T, 3> one(tokens, heads, head_dim);
  tensor<T, 4> batch(2, tokens, heads, head_dim);
  std::copy(s.x.begin(), s.x.end(), one.data());
  std::copy(s.x.begin(), s.x.end(), batch.data());
  std::copy(s.x.begin(), s.x.end(), batch.data() + s.x.size());
  rotate(rotary::view(one));
  rotate(rotary::view(batch));
  expect_elements(Eigen::Map<row_major<T>>(one.data(), tokens, columns), s.expected);
  expect_elements(Eigen::Map<row_major<T>>(batch.data(), tokens, columns), s.expected);
  expect_elements(Eigen::Map<row_major<T>>(batch.data() + s.x.size(), tokens, columns), s.expected);
  const tensor_view<T> view = rotary::view(batch);
  EXPECT_EQ(view.batch, 2u);
  EXPECT_EQ(view.tokens, 5u);
  EXPECT_EQ(view.heads, 3u);
  EXPECT_EQ(view.head_dim, 10u);
  rotate(rotary::view(Eigen::TensorMap<tensor<T, 4>>(s.x.data(), 1, tokens, heads, head_dim)));
  expect_elements(s.before, s.expected);
}

TYPED_TEST(EveryScalar, OutOfPlaceFromConst) {
  using T = TypeParam;
  sample<T> s;
  const row_major<T> source = s.before;
  row_major<T> destination(tokens, columns);
  const rotary::step_table<float> step = step_of(tokens);
  rotary::rotate(rotary::view(source, heads), rotary::view(destination, heads), step, how);
  expect_elements(destination, s.expected);
  expect_elements(source, s.x);
  const tensor<T, 3> constant = Eigen::TensorMap<const tensor<T, 3>>(s.x.data(), tokens, heads, head_dim);
  tensor<T, 3> result(tokens, heads, head_dim);
  rotary::rotate(rotary::view(constant), rotary::view(result), step, how);
  expect_elements(Eigen::Map<row_major<T>>(result.data(), tokens, columns), s.expected);
}

TEST(Eigen, PackedQueriesKeysAndValues) {
  const rotary::table<float> table(rotary::make_spectrum(8, 10000.0), 10);
  Eigen::Matrix<float, 3, 64, Eigen::RowMajor> packed, before;  // 4 heads of q, 2 of k, 2 of v, 8 channels each
  packed.setRandom();
  before = packed;
  rotary::rotate(rotary::heads(rotary::view(packed, 8), 0, 4), table, 5);
  rotary::rotate(rotary::view(packed.middleCols(32, 16), 2), table, 5);
  row_major<float> q = before.leftCols(32), k = before.middleCols(32, 16);
  rotary::rotate(rotary::view(q, 4), table, 5);
  rotary::rotate(rotary::view(k, 2), table, 5);
  EXPECT_TRUE(packed.leftCols(32) == q);
  EXPECT_TRUE(packed.middleCols(32, 16) == k);
  EXPECT_TRUE(packed.rightCols(16) == before.rightCols(16));
}

TEST(Eigen, AgreesWithEigensOwnRotation) {
  const std::vector<double> inv_freq = {1.0, 0.25, -0.03};
  const rotary::table<double> table(rotary::spectrum(inv_freq), 100);
  tensor<double, 4> q(2, 4, 3, 6);
  q.setRandom();
  const tensor<double, 4> before = q;
  const std::int32_t offsets[] = {90, 3};
  rotary::rotate(rotary::view(q), table, rotary::positions::per_sequence(offsets, 2));
  for (Eigen::Index b = 0; b < 2; ++b) {
    for (Eigen::Index t = 0; t < 4; ++t) {
      for (Eigen::Index h = 0; h < 3; ++h) {
        for (Eigen::Index j = 0; j < 3; ++j) {
          const double position = static_cast<double>(offsets[b] + t);
          const Eigen::Vector2d expected = Eigen::Rotation2D<double>(position * inv_freq[static_cast<std::size_t>(j)]) *
                                           Eigen::Vector2d(before(b, t, h, j), before(b, t, h, j + 3));
          EXPECT_NEAR(q(b, t, h, j), expected[0], 1e-13);
          EXPECT_NEAR(q(b, t, h, j + 3), expected[1], 1e-13);
        }
      }
    }
  }
}

TEST(Eigen, ViewsRefuseWhatTheyCannotShow) {
  row_major<float> q(4, 30);
  expect_refused([&] { rotary::view(q, 4); }, "view", {"heads is 4", "30 columns"});
  expect_refused([&] { rotary::view(q, 0); }, "view", {"heads is 0", "30 columns"});
  expect_refused([&] { rotary::view(q, -3); }, "view", {"heads is -3"});
  std::vector<float> memory(240);
  const Eigen::Map<row_major<float>, 0, strides> apart(memory.data(), 4, 30, strides(60, 2));
  expect_refused([&] { rotary::view(apart, 3); }, "view", {"2 elements apart", "RowMajor"});
  Eigen::Map<column_major<float>, 0, strides> column(memory.data(), 4, 30, strides(4, 2));
  expect_refused([&] { rotary::view(column, 3); }, "view", {"4 elements apart"});
}

TEST(Eigen, EmptyObjectsAreNoWork) {
  row_major<float> no_tokens(0, 16);
  tensor<float, 4> no_heads(2, 3, 0, 16);
  const rotary::table<float> table(rotary::make_spectrum(16, 10000.0), 10);
  EXPECT_NO_THROW(rotary::rotate(rotary::view(no_tokens, 2), table, 0));
  EXPECT_NO_THROW(rotary::rotate(rotary::view(no_heads), table, 0));
  row_major<float> no_columns(3, 0);
  EXPECT_EQ(rotary::view(no_columns, 0).head_dim, 0u);
}

}  // namespace
