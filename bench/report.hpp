// The report: one aligned table on the terminal, and the same as JSON.
#ifndef ROTARY_BENCH_REPORT_HPP
#define ROTARY_BENCH_REPORT_HPP

#include <nlohmann/json.hpp>
#include <string>

#include "measure.hpp"

namespace bench {

class report {
 public:
  report();

  /// Prints CPU, compiler and the head of the table.
  void start() const;
  /// Prints a line for each comparison of a group that was run.
  void add(const group& g);
  /// Adds the figures of a group to the points of the plots.
  void add_sweep_point(const char* type, std::size_t tokens, const group& g);
  /// Prints how many limits were kept. Writes the JSON if `path` is not empty.
  void finish(const std::string& path);

 private:
  nlohmann::ordered_json json_;
  int passed_ = 0, short_ = 0;
};

}  // namespace bench

#endif
