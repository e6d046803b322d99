// An executor with threads of its own, for programs that have no pool. Link with the system's thread library
// (Threads::Threads) where the C++ library does not do so itself.
#ifndef ROTARY_PARALLEL_THREAD_POOL_HPP
#define ROTARY_PARALLEL_THREAD_POOL_HPP

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "../parallel.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Threads that are kept alive, asleep while there is nothing to do, and joined at the end. The caller of a run is one
/// of its threads. A call while another runs, from another thread or from within f, does its work on its caller alone.
class thread_pool {
 public:
  /// `threads` counts the caller, so one fewer are started. Throws rotary::error for 0, and what std::thread throws
  /// where the system gives no more of them.
  explicit thread_pool(std::size_t threads = available()) : thread_pool(empty()) {
    if (threads == 0) detail::fail("rotary::thread_pool: threads is 0; it must be at least 1, the caller.");
    workers_.reset(new std::thread[threads - 1]);
    for (; started_ + 1 < threads; ++started_) workers_[started_] = std::thread([this] { serve(); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    more_.notify_all();
    for (std::size_t i = 0; i < started_; ++i) workers_[i].join();
  }

  /// The caller included.
  std::size_t size() const noexcept { return started_ + 1; }

  /// Calls f(0), ..., f(n - 1), and returns when they are done. f must not throw, which in_parallel sees to.
  template <class F>
  void operator()(std::size_t n, const F& f) {
    if (n > 1 && started_ != 0 && run({&call<F>, &f, 0, n, n})) return;
    serial_executor()(n, f);
  }

 private:
  struct empty {};
  struct job {
    void (*call)(const void* f, std::size_t index);
    const void* f;
    std::size_t next, end, unfinished;
  };

  // The destructor joins what was started before a constructor that delegates to this one throws.
  explicit thread_pool(empty) {}

  static std::size_t available() noexcept {
    const unsigned threads = std::thread::hardware_concurrency();
    return threads == 0 ? 1 : threads;  // 0: unknown
  }

  template <class F>
  static void call(const void* f, std::size_t index) noexcept {
    (*static_cast<const F*>(f))(index);
  }

  /// False: another run is under way.
  bool run(const job& given) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (busy_) return false;
    busy_ = true;
    job_ = given;
    more_.notify_all();
    take_part(lock);
    done_.wait(lock, [this] { return job_.unfinished == 0; });
    busy_ = false;
    return true;
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_) {
      take_part(lock);
      more_.wait(lock, [this] { return ended_ || job_.next != job_.end; });
    }
  }

  void take_part(std::unique_lock<std::mutex>& lock) {
    while (job_.next != job_.end) {
      const std::size_t index = job_.next++;
      lock.unlock();
      job_.call(job_.f, index);  // both stay until no call is unfinished
      lock.lock();
      if (--job_.unfinished == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_, done_;
  job job_ = {nullptr, nullptr, 0, 0, 0};  // under the mutex, as all below
  bool busy_ = false, ended_ = false;
  std::size_t started_ = 0;  // from the constructor on
  std::unique_ptr<std::thread[]> workers_;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
