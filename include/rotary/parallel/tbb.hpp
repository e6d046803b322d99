// An executor of oneTBB's threads. The only file that needs oneTBB (TBB::tbb).
#ifndef ROTARY_PARALLEL_TBB_HPP
#define ROTARY_PARALLEL_TBB_HPP

#include <tbb/parallel_for.h>

#include "../parallel.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// tbb::parallel_for over the slices, in the arena of the calling thread. tbb::this_task_arena::max_concurrency() of
/// them are enough.
struct tbb_executor {
  template <class F>
  void operator()(std::size_t n, const F& f) const {
    ::tbb::parallel_for(std::size_t{0}, n, f);
  }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
