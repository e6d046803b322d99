// A call's work on several threads, whoever owns them.
//
//     rotary::thread_pool pool(8);                                     // parallel/thread_pool.hpp
//     rotary::in_parallel(pool, 8, [&](const rotary::slice& part) { rotary::rotate(q, table, 0, {}, part); });
//
// An executor is anything that can be called as executor(n, f), calls f(0), ..., f(n - 1) once each, on threads of its
// choice, and returns when all of them are done: the ones in parallel/, or a lambda around an engine's own loop:
//
//     const auto loop = [&](std::size_t n, const auto& f) { engine.parallel_for(0, n, f); };
//     rotary::in_parallel(loop, engine.threads(), [&](const rotary::slice& part) { ... });
#ifndef ROTARY_PARALLEL_HPP
#define ROTARY_PARALLEL_HPP

#include <atomic>
#include <exception>

#include "error.hpp"
#include "layout.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Calls work(slice{i, count}) for every i below count by the executor, once each: for every call that takes a slice,
/// whose results have the same bits for any count and any threads. As many slices as threads are enough; one thread is
/// faster where a call takes less than waking the others does, some microseconds.
///
/// What a slice throws goes to the caller once the others are done, one of several; contracts are checked in every
/// slice, before it writes, so a call that breaks one writes nothing. With -fno-exceptions, see error.hpp. Throws
/// rotary::error for a count of 0, which would leave the work undone, or above 2^31 - 1, which not every executor can
/// count to.
template <class Executor, class Work>
void in_parallel(Executor&& executor, std::size_t count, const Work& work) {
  constexpr std::size_t most = 0x7fffffff;
  if (count == 0 || count > most) {
    detail::fail("rotary::in_parallel: count is %zu; it must be from 1 to %zu. Use the number of threads.", count,
                 most);
  }
#if ROTARY_EXCEPTIONS
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr thrown;
  executor(count, [&](std::size_t index) noexcept {
    try {
      work(slice{index, count});
    } catch (...) {
      if (!failed.test_and_set()) thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
#else
  executor(count, [&](std::size_t index) { work(slice{index, count}); });
#endif
}

/// The caller's thread alone.
struct serial_executor {
  template <class F>
  void operator()(std::size_t n, const F& f) const {
    for (std::size_t i = 0; i < n; ++i) f(i);
  }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
