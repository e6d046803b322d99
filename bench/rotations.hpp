// The library's calls as measurements: q and k of a number of tokens, as an engine would rotate them.
#ifndef ROTARY_BENCH_ROTATIONS_HPP
#define ROTARY_BENCH_ROTATIONS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <rotary/layout.hpp>
#include <rotary/table.hpp>
#include <rotary/tensor.hpp>

namespace bench {

/// q and k of the same tokens.
template <class T>
struct query_and_key {
  rotary::tensor_view<T> q, k;
};

/// Rotates q and k from one into the other (in place: give the same twice), so many times, in part `part` of the work.
/// Every time at other positions, which run through the whole table.
template <class From, class To, class Row>
std::function<void(std::size_t)> rotations(const query_and_key<From>& from, const query_and_key<To>& to,
                                           const rotary::table<Row>& table, const rotary::layout& how,
                                           const rotary::slice& part = {});

}  // namespace bench

#endif
