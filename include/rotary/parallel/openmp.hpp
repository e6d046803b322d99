// An executor of OpenMP's threads: where the compiler is told to use OpenMP (-fopenmp, OpenMP::OpenMP_CXX), else there
// is none.
#ifndef ROTARY_PARALLEL_OPENMP_HPP
#define ROTARY_PARALLEL_OPENMP_HPP

#include "../parallel.hpp"

#ifdef _OPENMP

namespace rotary {
inline namespace ROTARY_ABI {

/// A parallel loop over the slices. omp_get_max_threads() of them are enough.
struct openmp_executor {
  template <class F>
  void operator()(std::size_t n, const F& f) const {
    const std::int64_t end = static_cast<std::int64_t>(n);  // OpenMP 2 knows signed counters only
#  pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < end; ++i) f(static_cast<std::size_t>(i));
  }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif

#endif
