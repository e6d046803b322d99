// A case and its floors, timed together: Google Benchmark interleaves the repetitions of one group at random, so that
// whatever else the machine does falls on all of them alike.
#ifndef ROTARY_BENCH_MEASURE_HPP
#define ROTARY_BENCH_MEASURE_HPP

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/// Something timed.
struct measurement {
  std::string name;
  std::function<void()> refresh;           // before timing: gives the tensors their first values; may be empty
  std::function<void(std::size_t)> calls;  // the timed work, so many times
  double tokens = 1;                       // per call; rows of a table
  double bytes = 0;                        // per token, read and written
  double elements = 0;                     // per token, rotated
  std::size_t most_calls = 1u << 20;       // between two refreshes
  std::size_t batch = 0;                   // calls timed at once; found at the first repetition

  std::vector<double> repetitions;  // nanoseconds per token, the median of the repetition's batches
  double nanoseconds() const;       // median of the repetitions; 0 before the run
};

/// One line of the report: a measurement against the best of its floors, or against a number.
struct comparison {
  std::string name;
  std::size_t measured;             // index into group::measurements
  std::vector<std::size_t> floors;  // likewise; empty: there is none
  double fixed_floor = 0;           // nanoseconds, instead of floors
  double limit = 0;                 // of the ratio; 0: none
  bool per_element = false;         // the ratio is of nanoseconds per rotated element
  std::string note;
};

struct group {
  std::string name;
  std::vector<measurement> measurements;
  std::vector<comparison> comparisons;

  std::size_t add(measurement m) {
    measurements.push_back(std::move(m));
    return measurements.size() - 1;
  }

  /// Adds the comparison, and for orientation the same one against others, where there are any.
  void compare(comparison c, const char* others, const std::vector<std::size_t>& floors_of_others) {
    comparisons.push_back(c);
    if (floors_of_others.empty()) return;
    c.name += others;
    c.floors = floors_of_others;
    c.limit = 0;
    comparisons.push_back(std::move(c));
  }
};

struct options {
  bool quick = false;
  bool sweep = false;
  std::string filter;  // regular expression on the names of comparisons
  std::string json;    // path; empty: none
};

/// Takes bench's own options from the command line, gives the rest to Google Benchmark, and ends the program with a
/// message where neither knows an argument.
options parse(int argc, char** argv);

/// Runs a group's measurements, all but those that no comparison which matches the filter needs; those comparisons are
/// removed. Returns false where nothing is left.
bool run(group& g, const options& how);

}  // namespace bench

#endif
