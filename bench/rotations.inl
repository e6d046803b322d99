// The definition behind rotations.hpp; each rotations_*.cpp instantiates it for some types, to compile side by side.
#include <rotary/rotary.hpp>

#include "rotations.hpp"

namespace bench {

template <class From, class To, class Row>
std::function<void(std::size_t)> rotations(const query_and_key<From>& from, const query_and_key<To>& to,
                                           const rotary::table<Row>& table, const rotary::layout& how,
                                           const rotary::slice& part) {
  const bool in_place = static_cast<const void*>(from.q.data) == static_cast<const void*>(to.q.data);
  return [=, &table, positions = first_positions(from.q.tokens, table.size())](std::size_t calls) mutable {
    for (std::size_t i = 0; i < calls; ++i) {
      const std::size_t position = positions.next();
      if (in_place) {
        rotary::rotate(to.q, table, position, how, part);
        rotary::rotate(to.k, table, position, how, part);
      } else {
        rotary::rotate(from.q, to.q, table, position, how, part);
        rotary::rotate(from.k, to.k, table, position, how, part);
      }
    }
  };
}

}  // namespace bench
