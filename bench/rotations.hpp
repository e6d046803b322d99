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

/// The first position of one call after another: those of a forward pass are the same for all layers of a model, and
/// those of the passes run through `rows` positions, `tokens` at a time.
class first_positions {
 public:
  first_positions(std::size_t tokens, std::size_t rows) : tokens_(tokens), rows_(rows) {}

  std::size_t next() {
    constexpr int layers = 32;
    layer_ = (layer_ + 1) % layers;
    if (layer_ == 0) position_ = position_ + 2 * tokens_ <= rows_ ? position_ + tokens_ : 0;
    return position_;
  }

 private:
  std::size_t tokens_, rows_, position_ = 0;
  int layer_ = 0;
};

/// Rotates q and k from one into the other (in place: give the same twice), so many times, in part `part` of the work.
/// Their positions run through the whole table.
template <class From, class To, class Row>
std::function<void(std::size_t)> rotations(const query_and_key<From>& from, const query_and_key<To>& to,
                                           const rotary::table<Row>& table, const rotary::layout& how,
                                           const rotary::slice& part = {});

}  // namespace bench

#endif
