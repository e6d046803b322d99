#include <sched.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <rotary/rotary.hpp>
#include <thread>

#include "cases.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

constexpr rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};

group one_head() {
  group g;
  g.name = "one head";
  shape s;
  s.q_heads = 1;
  s.k_heads = 0;
  void* const memory = arena(s.elements() * sizeof(float));
  if (memory == nullptr) return g;
  for (const rotary::pairing how : pairings) {
    const rotary::table<float>& rows = rows_for<float>(128, 1);
    const auto x = rotary::thd(static_cast<float*>(memory), 1, 1, 128);
    measurement m = in_place<float>(name_of(how), s, memory, s.elements() * sizeof(float));
    m.calls = [=, &rows, position = std::int64_t{0}](std::size_t calls) mutable {
      for (std::size_t i = 0; i < calls; ++i) {
        position = (position + 1) % 64;
        rotary::rotate(x, rows, position, how);
      }
    };
    comparison c;
    c.name = std::string("f32 ") + name_of(how) + ", one head of 128, the whole call";
    c.measured = g.add(std::move(m));
    c.fixed_floor = 20;
    c.limit = 1;
    g.comparisons.push_back(c);
  }
  return g;
}

group avx2(std::size_t tokens, double limit) {
  group g;
  g.name = "AVX2, " + tokens_name(tokens);
  shape s;
  s.tokens = tokens;
  void* const memory = arena(s.elements() * sizeof(float));
  if (memory == nullptr || !rotary::detail::backend_available(rotary::backend::avx512)) return g;
  const query_and_key<float> x = dense<float>(memory, s);
  for (const rotary::pairing how : pairings) {
    measurement best = in_place<float>("AVX-512", s, memory, s.elements() * sizeof(float));
    best.calls = rotations(x, x, rows_for<float>(128, tokens), how);
    measurement forced = best;
    forced.name = "AVX2";
    forced.calls = [calls = best.calls](std::size_t n) {
      rotary::detail::force_backend(rotary::backend::avx2);
      calls(n);
      rotary::detail::force_backend();
    };
    comparison c;
    c.name = std::string("f32 ") + name_of(how) + ", AVX2 forced, " + tokens_name(tokens);
    c.floors = {g.add(std::move(best))};
    c.measured = g.add(std::move(forced));
    c.limit = limit;
    g.comparisons.push_back(c);
  }
  return g;
}

int topology(int cpu, const char* what) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + what);
  int id = -1;
  file >> id;
  return id;
}

/// A CPU of another core in the same package as `here`, of those that this process may use; -1 if there is none.
int neighbour_of(int here, const cpu_set_t& allowed) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed) &&
        topology(cpu, "physical_package_id") == topology(here, "physical_package_id") &&
        topology(cpu, "core_id") != topology(here, "core_id")) {
      return cpu;
    }
  }
  return -1;
}

void stay_on(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<unsigned>(cpu), &only);
  sched_setaffinity(0, sizeof only, &only);
}

/// A thread that does work beside its owner, on another core: the system would often leave both on one. It waits for
/// more without sleeping, but not for long, so that it leaves the other measurements alone.
class second_thread {
 public:
  second_thread() {
    sched_getaffinity(0, sizeof allowed_, &allowed_);
    const int here = sched_getcpu(), there = neighbour_of(here, allowed_);
    has_core_ = there >= 0;
    if (has_core_) stay_on(here);
    thread_ = std::thread([this, there] { work(there); });
  }
  ~second_thread() {
    stop_ = true;
    started_.fetch_add(1, std::memory_order_release);
    thread_.join();
    sched_setaffinity(0, sizeof allowed_, &allowed_);
  }
  second_thread(const second_thread&) = delete;
  second_thread& operator=(const second_thread&) = delete;

  /// Whether there is another core.
  bool has_core() const { return has_core_; }

  /// Runs theirs(n) there and mine(n) here, and returns when both are done.
  void run_beside(const std::function<void(std::size_t)>& theirs, const std::function<void(std::size_t)>& mine,
                  std::size_t n) {
    theirs_ = &theirs;
    n_ = n;
    const unsigned turn = started_.fetch_add(1, std::memory_order_release) + 1;
    mine(n);
    for (unsigned waited = 0; done_.load(std::memory_order_acquire) != turn; ++waited) {
      if (waited > 10000) std::this_thread::yield();  // the other may need this core
    }
  }

 private:
  void work(int cpu) {
    if (has_core_) stay_on(cpu);
    for (unsigned turn = 1;; ++turn) {
      for (unsigned waited = 0; started_.load(std::memory_order_acquire) != turn; ++waited) {
        if (waited > 10000) std::this_thread::yield();
        if (waited > 100000) std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      if (stop_) return;
      (*theirs_)(n_);
      done_.store(turn, std::memory_order_release);
    }
  }

  std::atomic<unsigned> started_{0}, done_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(std::size_t)>* theirs_ = nullptr;
  std::size_t n_ = 0;
  cpu_set_t allowed_;
  bool has_core_ = false;
  std::thread thread_;
};

// Both threads' parts stay in the second cache of their cores. The calls of one thread do not wait for the other's.
group two_threads() {
  group g;
  g.name = "two threads";
  shape s;
  s.tokens = 32;
  void* const memory = arena(s.elements() * sizeof(float));
  if (memory == nullptr) return g;
  const query_and_key<float> x = dense<float>(memory, s);
  const rotary::table<float>& rows = rows_for<float>(128, s.tokens);
  const auto other = std::make_shared<second_thread>();
  if (!other->has_core()) return g;
  for (const rotary::pairing how : pairings) {
    measurement alone = in_place<float>("one thread", s, memory, s.elements() * sizeof(float));
    alone.calls = rotations(x, x, rows, how);
    measurement both = alone;
    both.name = "two threads";
    both.calls = [other, first = rotations(x, x, rows, how, {0, 2}),
                  second = rotations(x, x, rows, how, {1, 2})](std::size_t n) { other->run_beside(second, first, n); };
    comparison c;
    c.name = std::string("f32 ") + name_of(how) + ", two threads by slice, 32 tokens";
    c.floors = {g.add(std::move(alone))};
    c.measured = g.add(std::move(both));
    c.limit = 1 / 1.85;
    g.comparisons.push_back(c);
  }
  return g;
}

}  // namespace

std::vector<group_maker> call_groups() {
  return {one_head, [] { return avx2(1, 2.0); }, [] { return avx2(512, 1.25); }, two_threads};
}

}  // namespace bench
