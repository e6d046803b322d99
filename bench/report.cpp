#include "report.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <rotary/rotary.hpp>

namespace bench {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

std::string backend_name() {
  std::string text = rotary::backend_name(rotary::active_backend());
  for (const rotary::backend more : {rotary::backend::avx512_bf16, rotary::backend::avx512_fp16}) {
    if (rotary::detail::backend_available(more)) text += std::string(", ") + rotary::backend_name(more);
  }
  return text;
}

/// A comparison with its figures.
struct line {
  double nanoseconds, gigabytes_per_second;  // per token; per second
  std::string floor;
  double floor_nanoseconds = 0, ratio = 0;
  const char* verdict = "";
};

line evaluate(const group& g, const comparison& c) {
  const measurement& m = g.measurements[c.measured];
  line l;
  l.nanoseconds = m.nanoseconds();
  l.gigabytes_per_second = m.bytes / l.nanoseconds;
  for (const std::size_t index : c.floors) {
    const measurement& floor = g.measurements[index];
    const double scale = c.per_element ? m.elements / floor.elements : 1;
    const double nanoseconds = floor.nanoseconds() * scale;
    if (l.floor_nanoseconds == 0 || nanoseconds < l.floor_nanoseconds) {
      l.floor_nanoseconds = nanoseconds;
      l.floor = floor.name + (c.per_element ? ", as many elements" : "");
    }
  }
  if (c.fixed_floor != 0) {
    l.floor_nanoseconds = c.fixed_floor;
    l.floor = "fixed";
  }
  if (l.floor_nanoseconds != 0) l.ratio = l.nanoseconds / l.floor_nanoseconds;
  if (c.limit != 0) l.verdict = l.ratio <= c.limit ? "pass" : "SHORT";
  return l;
}

constexpr const char* columns = "%-56s %10s %7s  %-44s %10s %6s %6s  %s\n";

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

report::report() {
  json_["context"] = {{"cpu", cpu_name()}, {"compiler", compiler_name()}, {"backend", backend_name()}};
  auto& caches = json_["context"]["caches"] = nlohmann::ordered_json::array();
  for (const auto& cache : benchmark::CPUInfo::Get().caches) {
    if (cache.type != "Instruction") caches.push_back({{"level", cache.level}, {"bytes", cache.size}});
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1) json_["context"]["load"] = load;
  for (const char* part : {"rows", "measurements", "sweep"}) json_[part] = nlohmann::ordered_json::array();
}

void report::start() const {
  const auto& context = json_["context"];
  std::printf("%s; %s; backends: %s\n", context["cpu"].get<std::string>().c_str(),
              context["compiler"].get<std::string>().c_str(), context["backend"].get<std::string>().c_str());
  const double load = context.value("load", 0.0);
  if (load > 0.5) std::printf("The machine is busy (load %.1f): these figures mean little.\n", load);
  std::printf(
      "One thread. Each token has 32 + 8 heads of 128 where nothing else is said. How to read it: "
      "bench/README.md\n\n");
  std::printf(columns, "case", "ns/token", "GB/s", "floor", "ns/token", "ratio", "limit", "");
  std::fflush(stdout);
}

void report::add(const group& g) {
  for (const comparison& c : g.comparisons) {
    const line l = evaluate(g, c);
    const std::string verdict = l.verdict + (c.note.empty() ? "" : (*l.verdict == 0 ? "(" : " (") + c.note + ")");
    std::printf(columns, c.name.c_str(), number("%.1f", l.nanoseconds).c_str(),
                number("%.1f", l.gigabytes_per_second).c_str(), l.floor.c_str(),
                l.floor_nanoseconds == 0 ? "" : number("%.1f", l.floor_nanoseconds).c_str(),
                l.ratio == 0 ? "" : number("%.2f", l.ratio).c_str(),
                c.limit == 0 ? "" : number("%.2f", c.limit).c_str(), verdict.c_str());
    passed_ += std::strcmp(l.verdict, "pass") == 0;
    short_ += std::strcmp(l.verdict, "SHORT") == 0;
    nlohmann::ordered_json row = {{"group", g.name},
                                  {"case", c.name},
                                  {"ns_per_token", l.nanoseconds},
                                  {"gb_per_s", l.gigabytes_per_second},
                                  {"floor", l.floor},
                                  {"floor_ns_per_token", l.floor_nanoseconds},
                                  {"ratio", l.ratio},
                                  {"limit", c.limit},
                                  {"verdict", l.verdict},
                                  {"note", c.note}};
    json_["rows"].push_back(row);
  }
  std::fflush(stdout);
  for (const measurement& m : g.measurements) {
    if (m.repetitions.empty()) continue;
    json_["measurements"].push_back({{"group", g.name},
                                     {"name", m.name},
                                     {"ns_per_token", m.nanoseconds()},
                                     {"bytes_per_token", m.bytes},
                                     {"repetitions", m.repetitions}});
  }
}

void report::add_sweep_point(const char* type, std::size_t tokens, const group& g) {
  const auto push = [&](const std::string& series, double gigabytes_per_second, double bytes) {
    json_["sweep"].push_back(
        {{"type", type}, {"series", series}, {"tokens", tokens}, {"bytes", bytes}, {"gb_per_s", gigabytes_per_second}});
    std::printf("%-5s %8zu tokens  %-44s %8.1f GB/s\n", type, tokens, series.c_str(), gigabytes_per_second);
  };
  for (std::size_t i = 0; i < g.comparisons.size(); ++i) {
    const measurement& m = g.measurements[g.comparisons[i].measured];
    const double bytes = m.bytes / 2 * m.tokens;
    const line l = evaluate(g, g.comparisons[i]);
    if (i == 0) push("floor", m.bytes / l.floor_nanoseconds, bytes);
    push(m.name, l.gigabytes_per_second, bytes);
  }
  std::fflush(stdout);
}

void report::finish(const std::string& path) {
  if (passed_ + short_ != 0) std::printf("\n%d within their limits, %d short of them\n", passed_, short_);
  if (path.empty()) return;
  std::ofstream file(path);
  file << json_.dump(1) << "\n";
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(1);
  }
  std::printf("written to %s\n", path.c_str());
}

}  // namespace bench
