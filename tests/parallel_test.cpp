// in_parallel and its executors: the bits of one thread, every slice once, what slices throw, calls within calls. The
// same file is compiled for ThreadSanitizer, then without OpenMP and oneTBB, whose synchronisation that does not see.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/parallel.hpp>
#include <rotary/parallel/openmp.hpp>
#include <rotary/parallel/thread_pool.hpp>
#include <rotary/qk_norm.hpp>
#include <rotary/rotary.hpp>
#include <rotary/split_qkv.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#ifdef _OPENMP
#  include <omp.h>
#endif
#ifdef ROTARY_TEST_TBB
#  include <tbb/global_control.h>
#  include <tbb/task_arena.h>

#  include <rotary/parallel/execution.hpp>
#  include <rotary/parallel/tbb.hpp>
#endif

#include "reference.hpp"
#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::bfloat16;
using rotary::slice;
using rotary::thread_pool;

// ---- executors

using work = std::function<void(std::size_t)>;
using executor = std::function<void(std::size_t, const work&)>;

/// A parallel_for as an engine might have one: new threads for each call, that take whatever index is next.
void run_on_new_threads(std::size_t threads, std::size_t n, const work& f) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (std::size_t index = next++; index < n; index = next++) f(index);
    });
  }
  for (std::thread& each : all) each.join();
}

/// Something that makes an executor of a number of threads.
struct kind {
  std::string name;
  std::function<void(std::size_t threads, const std::function<void(const executor&)>& use)> with;
};

std::vector<kind> kinds() {
  std::vector<kind> all;
  all.push_back({"serial", [](std::size_t, const std::function<void(const executor&)>& use) {
                   use([](std::size_t n, const work& f) { rotary::serial_executor()(n, f); });
                 }});
  all.push_back({"new threads", [](std::size_t threads, const std::function<void(const executor&)>& use) {
                   use([=](std::size_t n, const work& f) { run_on_new_threads(threads, n, f); });
                 }});
  all.push_back({"thread_pool", [](std::size_t threads, const std::function<void(const executor&)>& use) {
                   thread_pool pool(threads);
                   use([&](std::size_t n, const work& f) { pool(n, f); });
                 }});
#ifdef _OPENMP
  all.push_back({"OpenMP", [](std::size_t threads, const std::function<void(const executor&)>& use) {
                   const int before = omp_get_max_threads();
                   omp_set_num_threads(static_cast<int>(threads));
                   use([](std::size_t n, const work& f) { rotary::openmp_executor()(n, f); });
                   omp_set_num_threads(before);
                 }});
#endif
#ifdef ROTARY_TEST_TBB
  all.push_back({"oneTBB", [](std::size_t threads, const std::function<void(const executor&)>& use) {
                   const tbb::global_control more(tbb::global_control::max_allowed_parallelism, 8);
                   tbb::task_arena arena(static_cast<int>(threads));
                   use([&](std::size_t n, const work& f) { arena.execute([&] { rotary::tbb_executor()(n, f); }); });
                 }});
  all.push_back({"std::execution", [](std::size_t, const std::function<void(const executor&)>& use) {
                   use([](std::size_t n, const work& f) { rotary::std_executor()(n, f); });
                 }});
#endif
  return all;
}

template <class Check>
void on_each(const Check& check) {
  for (const kind& each : kinds()) {
    for (std::size_t threads = 1; threads <= 8; ++threads) {
      SCOPED_TRACE(each.name + " with " + std::to_string(threads) + " threads");
      each.with(threads, [&](const executor& run) { check(run, threads); });
    }
  }
}

TEST(Executors, OfOpenMPAreTested) {
#ifndef _OPENMP
  GTEST_SKIP() << "this build has no OpenMP";
#endif
}

TEST(Executors, OfOneTbbAndTheLibraryAreTested) {
#ifndef ROTARY_TEST_TBB
  GTEST_SKIP() << "this build has no oneTBB, which std::execution is made of, too";
#endif
}

TEST(Executors, CallEveryIndexOnce) {
  on_each([](const executor& run, std::size_t) {
    for (const std::size_t n : {0u, 1u, 2u, 3u, 7u, 100u}) {
      std::vector<std::atomic<int>> calls(n + 1);
      run(n, [&](std::size_t i) { ++calls[i < n ? i : n]; });
      for (std::size_t i = 0; i <= n; ++i) EXPECT_EQ(calls[i].load(), i < n ? 1 : 0) << i << " of " << n;
    }
  });
}

// ---- the library's calls

/// Runs a call's slices.
using slices = std::function<void(const std::function<void(const slice&)>&)>;

/// One of each call, of 37 tokens with 4 + 2 + 2 heads; all results, side by side.
class calls {
 public:
  std::string results(const slices& run) const {
    std::vector<float> x = x_, q(tokens_ * 4 * dim_);
    std::vector<bfloat16> k(tokens_ * 2 * dim_), v(k), cache(slots_ * 2 * dim_, bfloat16(0.0f)), v_cache(cache);
    const auto in_place = rotary::thd(x.data(), tokens_, 8, dim_);
    const auto packed = rotary::thd(x_.data(), tokens_, 8, dim_);
    const auto to_k = rotary::thd(k.data(), tokens_, 2, dim_);
    const auto k_cache = rotary::paged_nhd(cache.data(), slots_ / 8, 8, 2, dim_);
    const rotary::slot_list where(ids_.data(), tokens_);
    run([&](const slice& part) { rotary::rotate(in_place, table_, -20, {}, part); });
    run([&](const slice& part) { rotary::rotate(rotary::heads(packed, 4, 2), to_k, step_, {}, part); });
    std::string all = bytes(k);
    run([&](const slice& part) {
      rotary::append(rotary::heads(packed, 4, 2), rotary::heads(packed, 6, 2), k_cache,
                     rotary::paged_nhd(v_cache.data(), slots_ / 8, 8, 2, dim_), where, step_, {}, part);
    });
    run([&](const slice& part) { rotary::shift(k_cache, where, spectrum_, -7, {}, part); });
    run([&](const slice& part) {
      rotary::split_qkv(packed, rotary::thd(q.data(), tokens_, 4, dim_), to_k, rotary::thd(v.data(), tokens_, 2, dim_),
                        step_, {}, part);
    });
    all += bytes(x) + bytes(q) + bytes(k) + bytes(v) + bytes(cache) + bytes(v_cache);
    const rotary::rms_norm<float> norm{x_.data(), dim_, 1e-6, true};
    run([&](const slice& part) { rotary::norm_and_rotate(in_place, norm, table_, -20, {}, part, 0.5); });
    run([&](const slice& part) {
      rotary::norm_and_append(rotary::heads(packed, 4, 2), norm, k_cache, where, step_, {}, part);
    });
    return all + bytes(x) + bytes(cache);
  }

  calls() {
    for (std::size_t t = 0; t < tokens_; ++t) ids_.push_back(static_cast<std::int64_t>(t * 7 % tokens_));
    step_.assign(ids_.data(), tokens_);
  }

 private:
  template <class T>
  static std::string bytes(const std::vector<T>& x) {
    return {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(T)};
  }

  static constexpr std::size_t tokens_ = 37, slots_ = 40, dim_ = 40;
  rotary::spectrum spectrum_ = rotary::make_spectrum(dim_, 10000.0);
  rotary::table<float> table_{spectrum_, 100, -50};
  rotary::step_table<float> step_{spectrum_};
  std::vector<float> x_ = reference::numbers<float>(tokens_ * 8 * dim_, 1);
  std::vector<std::int64_t> ids_;
};

TEST(InParallel, HasTheBitsOfOneThread) {
  const calls of;
  const std::string expected = of.results([](const std::function<void(const slice&)>& call) { call({}); });
  on_each([&](const executor& run, std::size_t threads) {
    for (const std::size_t count : {threads, 3 * threads + 1}) {
      const std::string got =
          of.results([&](const std::function<void(const slice&)>& call) { rotary::in_parallel(run, count, call); });
      EXPECT_TRUE(got == expected) << count << " slices";
    }
  });
}

TEST(InParallel, OfFewerHeadsThanSlices) {
  const rotary::table<float> rows(rotary::make_spectrum(8, 10000.0), 10);
  const std::vector<float> x = reference::numbers<float>(2 * 8, 2);
  std::vector<float> expected = x;
  rotary::rotate(rotary::thd(expected.data(), 1, 2, 8), rows, 5);
  thread_pool pool(4);
  std::vector<float> y = x;
  rotary::in_parallel(pool, 9, [&](const slice& part) {
    rotary::rotate(rotary::thd(y.data(), 1, 2, 8), rows, 5, {}, part);
    rotary::rotate(rotary::thd(static_cast<float*>(nullptr), 0, 2, 8), rows, 5, {}, part);
  });
  EXPECT_EQ(y, expected);
}

TEST(InParallel, RefusesNoSlices) {
  expect_refused([] { rotary::in_parallel(rotary::serial_executor(), 0, [](const slice&) {}); }, "in_parallel",
                 {"count is 0", "from 1 to 2147483647"});
  const std::size_t too_many = std::size_t{1} << 31;
  expect_refused([=] { rotary::in_parallel(rotary::serial_executor(), too_many, [](const slice&) {}); }, "in_parallel",
                 {"count is 2147483648", "from 1 to 2147483647"});
}

// ---- what slices throw

TEST(InParallel, ThrowsWhatASliceThrowsOnceTheOthersAreDone) {
  on_each([](const executor& run, std::size_t threads) {
    std::vector<std::atomic<int>> done(threads + 3);
    const auto call = [&](const slice& part) {
      if (part.index == 2) throw std::runtime_error("slice 2");
      ++done[part.index];
    };
    try {
      rotary::in_parallel(run, done.size(), call);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& raised) {
      EXPECT_STREQ(raised.what(), "slice 2");
    }
    for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i].load(), i == 2 ? 0 : 1) << i;
  });
}

TEST(InParallel, ThrowsOneOfSeveral) {
  on_each([](const executor& run, std::size_t threads) {
    const rotary::table<float> rows(rotary::make_spectrum(8, 10000.0), 10);
    const std::vector<float> before = reference::numbers<float>(4 * 2 * 8, 3);
    std::vector<float> x = before;
    expect_refused(
        [&] {
          rotary::in_parallel(run, threads, [&](const slice& part) {
            rotary::rotate(rotary::thd(x.data(), 4, 2, 8), rows, 7, {}, part);
          });
        },
        "rotate", {"positions 7 to 10", "holds 10 positions"});
    EXPECT_EQ(x, before);
    // And the next call is none the worse.
    rotary::in_parallel(run, threads,
                        [&](const slice& part) { rotary::rotate(rotary::thd(x.data(), 4, 2, 8), rows, 6, {}, part); });
    EXPECT_NE(x, before);
  });
}

// ---- the pool

TEST(ThreadPool, CountsItsCaller) {
  EXPECT_EQ(thread_pool(1).size(), 1u);
  EXPECT_EQ(thread_pool(5).size(), 5u);
  EXPECT_GE(thread_pool().size(), 1u);
  expect_refused([] { thread_pool(0); }, "thread_pool", {"threads is 0", "at least 1"});
}

TEST(ThreadPool, UsesAllOfItsThreads) {
  for (const std::size_t threads : {1u, 2u, 5u}) {
    thread_pool pool(threads);
    std::atomic<std::size_t> arrived{0}, met{0};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    pool(threads, [&](std::size_t) {
      ++arrived;
      // All are here at once, unless one of them waits for another to return.
      while (arrived.load() != threads && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      if (arrived.load() == threads && std::chrono::steady_clock::now() < deadline) ++met;
    });
    EXPECT_EQ(met.load(), threads);
  }
}

TEST(ThreadPool, RunsAThousandSmallCalls) {
  thread_pool pool(3);
  std::vector<int> counts(5, 0);  // plain: slices and runs must not meet
  for (int i = 0; i < 1000; ++i) pool(counts.size(), [&](std::size_t index) { ++counts[index]; });
  EXPECT_EQ(counts, std::vector<int>(5, 1000));
}

TEST(ThreadPool, TakesCallsFromWithinCalls) {
  thread_pool pool(3);
  std::vector<std::atomic<int>> calls(4 * 5);
  rotary::in_parallel(pool, 4, [&](const slice& outer) {
    rotary::in_parallel(pool, 5, [&](const slice& inner) { ++calls[outer.index * 5 + inner.index]; });
  });
  for (const std::atomic<int>& count : calls) EXPECT_EQ(count.load(), 1);
}

TEST(ThreadPool, TakesCallsFromSeveralThreads) {
  thread_pool pool(2);
  std::vector<std::vector<int>> counts(3, std::vector<int>(4, 0));
  run_on_new_threads(3, 3, [&](std::size_t caller) {
    for (int i = 0; i < 300; ++i) pool(4, [&](std::size_t index) { ++counts[caller][index]; });
  });
  EXPECT_EQ(counts, std::vector<std::vector<int>>(3, std::vector<int>(4, 300)));
}

TEST(ThreadPool, MayEndAtOnce) {
  for (int i = 0; i < 100; ++i) thread_pool pool(4);
}

}  // namespace
