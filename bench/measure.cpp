#include "measure.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Fresh inputs, and caches as they are after a call.
void prepare(measurement& m) {
  if (m.refresh) m.refresh();
  m.calls(1);
}

// How many calls to time at once: enough that reading the clock costs less than a thousandth.
std::size_t calls_per_batch(measurement& m) {
  constexpr double batch = 100e-6;
  if (m.most_calls < 2) return 1;
  for (std::size_t calls = 1;; calls *= 2) {
    prepare(m);
    const clock::time_point start = clock::now();
    m.calls(calls);
    const double seconds = seconds_since(start);
    if (seconds > batch / 4 || 2 * calls >= m.most_calls) {
      const double wanted = batch / seconds * static_cast<double>(calls);
      return static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(m.most_calls - 1)));
    }
  }
}

void time(benchmark::State& state, measurement& m) {
  if (m.batch == 0) m.batch = calls_per_batch(m);
  const std::size_t batch = m.batch;
  std::vector<double> batches;
  prepare(m);
  std::size_t since_refresh = 1;
  for (auto _ : state) {
    if (since_refresh + batch > m.most_calls) {
      prepare(m);
      since_refresh = 1;
    }
    const clock::time_point start = clock::now();
    m.calls(batch);
    const double seconds = seconds_since(start);
    since_refresh += batch;
    state.SetIterationTime(seconds);
    batches.push_back(seconds / static_cast<double>(batch));
  }
  state.counters["ns"] = median(std::move(batches)) * 1e9 / m.tokens;
}

/// Takes the repetitions' figures and prints nothing.
class collector : public benchmark::BenchmarkReporter {
 public:
  explicit collector(group& g) : group_(g) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      const std::size_t index = static_cast<std::size_t>(std::strtoul(run.run_name.function_name.c_str(), nullptr, 10));
      const auto found = run.counters.find("ns");
      if (found != run.counters.end()) group_.measurements[index].repetitions.push_back(found->second);
    }
  }

 private:
  group& group_;
};

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

[[noreturn]] void usage(const char* complaint) {
  std::fprintf(stderr,
               "%s\n"
               "usage: rotary_bench [--quick] [--sweep] [--filter=<regex on case names>] [--json=<path>]\n"
               "                    [--benchmark_repetitions=<n>] [--benchmark_min_time=<seconds>]\n",
               complaint);
  std::exit(2);
}

}  // namespace

double measurement::nanoseconds() const { return median(repetitions); }

options parse(int argc, char** argv) {
  options chosen;
  std::vector<char*> rest = {argv[0]};
  std::string interleave = "--benchmark_enable_random_interleaving=true", repetitions, min_time;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      chosen.quick = true;
    } else if (std::strcmp(argv[i], "--sweep") == 0) {
      chosen.sweep = true;
    } else if (starts_with(argv[i], "--filter=")) {
      chosen.filter = argv[i] + std::strlen("--filter=");
    } else if (starts_with(argv[i], "--json=")) {
      chosen.json = argv[i] + std::strlen("--json=");
    } else {
      rest.push_back(argv[i]);
    }
  }
  // Before the user's own, so that those win.
  repetitions = chosen.quick ? "--benchmark_repetitions=3" : "--benchmark_repetitions=9";
  min_time = chosen.quick ? "--benchmark_min_time=0.001" : "--benchmark_min_time=0.012";
  rest.insert(rest.begin() + 1, {&interleave[0], &repetitions[0], &min_time[0]});
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (count > 1) usage((std::string("unknown argument ") + rest[1]).c_str());
  return chosen;
}

bool run(group& g, const options& how) {
  const std::regex wanted(how.filter.empty() ? "." : how.filter);
  const auto unwanted = [&](const comparison& c) { return !std::regex_search(c.name, wanted); };
  g.comparisons.erase(std::remove_if(g.comparisons.begin(), g.comparisons.end(), unwanted), g.comparisons.end());
  std::vector<bool> needed(g.measurements.size(), false);
  for (const comparison& c : g.comparisons) {
    needed[c.measured] = true;
    for (const std::size_t floor : c.floors) needed[floor] = true;
  }
  benchmark::ClearRegisteredBenchmarks();
  for (std::size_t i = 0; i < g.measurements.size(); ++i) {
    if (!needed[i]) continue;
    measurement& m = g.measurements[i];
    benchmark::RegisterBenchmark(std::to_string(i).c_str(), [&m](benchmark::State& state) {
      time(state, m);
    })->UseManualTime();
  }
  if (g.comparisons.empty()) return false;
  collector figures(g);
  benchmark::RunSpecifiedBenchmarks(&figures, nullptr, ".");
  return true;
}

}  // namespace bench
