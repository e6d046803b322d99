// An executor of the C++ library's parallel algorithms. libstdc++'s are made of oneTBB: programs that include this, or
// <execution>, need TBB::tbb where its headers are installed.
#ifndef ROTARY_PARALLEL_EXECUTION_HPP
#define ROTARY_PARALLEL_EXECUTION_HPP

#include <algorithm>
#include <execution>
#include <memory>

#include "../parallel.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// std::for_each with std::execution::par over the slices. Allocates their numbers.
struct std_executor {
  template <class F>
  void operator()(std::size_t n, const F& f) const {
    const std::unique_ptr<std::size_t[]> indices(new std::size_t[n]);
    for (std::size_t i = 0; i < n; ++i) indices[i] = i;
    std::for_each(std::execution::par, indices.get(), indices.get() + n, f);
  }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
