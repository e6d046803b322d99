// Views of Eigen's matrices and tensors. The only header that needs Eigen (3.4 or newer).
//
//     Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> q(tokens, 32 * 128);
//     rotary::rotate(rotary::view(q, 32), table, first_position);
//
//     Eigen::Tensor<Eigen::bfloat16, 4, Eigen::RowMajor> k(batch, tokens, heads, head_dim);
//     rotary::rotate(rotary::view(k), table, first_position);
//
// A view refers to the object's memory. A const object, or a map of const ones, gives a view to read from. What does
// not compile: expressions like a + b, and temporaries that own their elements, since the view would outlive them.
//
// The channels of a head must lie side by side, which Eigen's default order does not give: use Eigen::RowMajor. Where a
// column-major object has its dimensions in the opposite order, its memory is as it should be, and these show it:
//
//     rotary::view(x.transpose(), 32)                                     // matrix with a column per token
//     Eigen::TensorMap<Eigen::Tensor<float, 4, Eigen::RowMajor>>(x.data(), batch, tokens, heads, head_dim)
//                                                                         // tensor [head_dim, heads, tokens, batch]
#ifndef ROTARY_EIGEN_HPP
#define ROTARY_EIGEN_HPP

#include <Eigen/Core>
#include <type_traits>

#include "tensor.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

template <>
struct element<Eigen::half> {
  using format = float16;
};
template <>
struct element<Eigen::bfloat16> {
  using format = bfloat16;
};

namespace detail {

template <class Derived>
std::true_type eigen_matrix(const Eigen::DenseBase<Derived>*);
std::false_type eigen_matrix(const void*);

template <class Derived>
std::true_type eigen_owner(const Eigen::PlainObjectBase<Derived>*);
template <class Of, int Options, class Stride>
std::true_type eigen_owner(const Eigen::Ref<const Of, Options, Stride>*);  // it may hold a copy
std::false_type eigen_owner(const void*);

template <class X>
using eigen_object = std::remove_cv_t<std::remove_reference_t<X>>;

template <class X>
constexpr bool is_eigen_matrix = decltype(eigen_matrix(static_cast<eigen_object<X>*>(nullptr)))::value;

// Elements in memory, with channels that may lie side by side as far as the type tells: the columns of a row-major
// matrix, or those of a column-major map whose rows do not.
template <class X, bool = is_eigen_matrix<X>>
struct has_dense_rows : std::false_type {};
template <class X>
struct has_dense_rows<X, true> {
  using type = eigen_object<X>;
  static constexpr int inner = type::InnerStrideAtCompileTime;
  static constexpr bool value = (type::Flags & Eigen::DirectAccessBit) != 0 &&
                                (type::IsRowMajor ? inner == 1 || inner == Eigen::Dynamic : inner != 1);
};

template <class X>
constexpr bool outlives_its_view =
    std::is_lvalue_reference<X>::value || !decltype(eigen_owner(static_cast<eigen_object<X>*>(nullptr)))::value;

// Tensors are known by what they offer, so that <unsupported/Eigen/CXX11/Tensor> may be included before this header,
// after it, or not at all.
template <class X, class = void>
struct is_eigen_tensor : std::false_type {};
template <class X>
struct is_eigen_tensor<X, std::void_t<decltype(eigen_object<X>::NumDimensions), decltype(eigen_object<X>::Layout),
                                      decltype(std::declval<X&>().dimension(0)), decltype(*std::declval<X&>().data())>>
    : std::true_type {};

// An owner hands a const pointer out where it is const itself; a TensorMap does not.
template <class X>
constexpr bool is_tensor_map = std::is_same<decltype(std::declval<eigen_object<X>&>().data()),
                                            decltype(std::declval<const eigen_object<X>&>().data())>::value;

template <class X, bool = is_eigen_tensor<X>::value>
struct is_viewable_tensor : std::false_type {};
template <class X>
struct is_viewable_tensor<X, true> {
  using type = eigen_object<X>;
  static constexpr bool value = int{type::Layout} == int{Eigen::RowMajor} &&
                                (type::NumDimensions == 3 || type::NumDimensions == 4) &&
                                (std::is_lvalue_reference<X>::value || is_tensor_map<X>);
};

// Names in a compiler's message what was asked for.
template <class X>
using row_major_eigen_matrix_that_outlives_its_view =
    std::enable_if_t<has_dense_rows<X>::value && outlives_its_view<X>, int>;
template <class X>
using row_major_eigen_tensor_of_rank_3_or_4_that_outlives_its_view =
    std::enable_if_t<is_viewable_tensor<X>::value, int>;

template <class T>
tensor_view<T> matrix_view(T* data, Eigen::Index rows, Eigen::Index columns, Eigen::Index row_stride,
                           Eigen::Index column_stride, Eigen::Index heads) {
  if (columns > 1 && column_stride != 1) {
    fail(
        "rotary::view: the matrix has columns that are %lld elements apart; it must be 1, so that the channels of a "
        "head lie side by side. Use Eigen::RowMajor.",
        static_cast<long long>(column_stride));
  }
  if (heads < 0 || (heads == 0 ? columns != 0 : columns % heads != 0)) {
    fail("rotary::view: heads is %lld; it must divide the %lld columns of the matrix, which are heads * head_dim.",
         static_cast<long long>(heads), static_cast<long long>(columns));
  }
  const Eigen::Index head_dim = heads == 0 ? 0 : columns / heads;
  return {data,
          1,
          static_cast<std::size_t>(rows),
          static_cast<std::size_t>(heads),
          static_cast<std::size_t>(head_dim),
          0,
          row_stride,
          head_dim};
}

}  // namespace detail

/// The view [1, rows, heads, columns / heads] of a Matrix, Array, Map, Ref, block or transpose: a row per token, the
/// heads side by side in its columns. Throws rotary::error if heads does not divide the columns, or if a map's inner
/// stride is not 1.
template <class Matrix, detail::row_major_eigen_matrix_that_outlives_its_view<Matrix> = 0>
auto view(Matrix&& x, Eigen::Index heads) {
  return detail::matrix_view(x.data(), x.rows(), x.cols(), x.rowStride(), x.colStride(), heads);
}

/// The view of a Tensor or TensorMap of rank 4, [batch, tokens, heads, head_dim], or of rank 3, [tokens, heads,
/// head_dim].
template <class Tensor, detail::row_major_eigen_tensor_of_rank_3_or_4_that_outlives_its_view<Tensor> = 0>
auto view(Tensor&& x) {
  using object = std::remove_reference_t<Tensor>;
  using element = std::remove_pointer_t<decltype(x.data())>;
  std::conditional_t<std::is_const<object>::value, const element, element>* const data = x.data();
  const auto first = static_cast<std::size_t>(x.dimension(0)), second = static_cast<std::size_t>(x.dimension(1));
  const auto third = static_cast<std::size_t>(x.dimension(2));
  if constexpr (object::NumDimensions == 3) {
    return thd(data, first, second, third);
  } else {
    return bshd(data, first, second, third, static_cast<std::size_t>(x.dimension(3)));
  }
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
