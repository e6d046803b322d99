#include <cstring>
#include <new>
#include <rotary/rotary.hpp>

#include "cases.hpp"
#include "tensors.hpp"

namespace bench {
namespace {

const rotary::spectrum& spectrum() {
  static const rotary::spectrum made = rotary::make_spectrum(128, 500000.0);
  return made;
}

void keep(const void* memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

template <class Row>
void add_range_table(group& g, std::size_t rows, double limit) {
  const std::size_t bytes = rows * 2 * spectrum().pairs() * sizeof(Row);
  measurement floor;
  floor.name = "memset";
  floor.tokens = static_cast<double>(rows);
  floor.bytes = static_cast<double>(bytes / rows);
  floor.elements = static_cast<double>(2 * spectrum().pairs());
  measurement m = floor;
  m.name = "table";
  floor.calls = [=](std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      void* const memory = ::operator new (bytes, std::align_val_t{64});  // the memory that the table gets as well
      std::memset(memory, 0x3f, bytes);  // not 0: some CPUs write zeros three times faster than anything else
      keep(memory);
      ::operator delete (memory, std::align_val_t{64});
    }
  };
  m.calls = [=](std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      const rotary::table<Row> made(spectrum(), static_cast<std::int64_t>(rows));
      keep(made.view().cos);
    }
  };
  comparison c;
  c.name = std::string("range table ") + type_name<Row>() + ", " + std::to_string(rows) + " rows of 64 pairs, per row";
  c.floors = {g.add(std::move(floor))};
  c.measured = g.add(std::move(m));
  c.limit = limit;
  g.comparisons.push_back(c);
}

// Positions that look random: below `bound`, or, if that is 0, any that 64 bits hold, of either sign.
std::vector<std::int64_t> positions_below(std::uint64_t bound, std::size_t count = 4096) {
  std::vector<std::int64_t> made(count);
  std::uint64_t state = 1;
  for (std::int64_t& position : made) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    position = bound == 0 ? static_cast<std::int64_t>(state) : static_cast<std::int64_t>((state >> 16) % bound);
  }
  return made;
}

void add_step_row(group& g, const char* name, std::uint64_t bound, double nanoseconds) {
  measurement m;
  m.name = name;
  m.bytes = 2 * 64 * sizeof(float);
  m.elements = 128;
  const std::vector<std::int64_t> at = positions_below(bound);
  const auto step = std::make_shared<rotary::step_table<float>>(spectrum());
  m.calls = [=, next = std::size_t{0}](std::size_t calls) mutable {
    for (std::size_t i = 0; i < calls; ++i) {
      next = (next + 1) % 4096;
      step->assign(&at[next], 1);
      keep(step->view().cos);
    }
  };
  comparison c;
  c.name = std::string("step_table, one row of 64 pairs, ") + name;
  c.measured = g.add(std::move(m));
  c.fixed_floor = nanoseconds;
  c.limit = 1;
  g.comparisons.push_back(c);
}

// [3, tokens]: the frames, rows and columns of an image of 64 x 64 patches after some text, as M-RoPE has them.
std::vector<std::int64_t> image_positions() {
  std::vector<std::int64_t> made;
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t token = 0; token < 4096; ++token) {
      made.push_back(1000 + (axis == 0 ? 0 : axis == 1 ? token / 64 : token % 64));
    }
  }
  return made;
}

void add_three_axes(group& g, const char* name, const std::vector<std::int64_t>& ids) {
  const std::size_t tokens = ids.size() / 3;
  measurement m;
  m.name = name;
  m.bytes = 2 * 64 * sizeof(float);
  m.elements = 128;
  m.tokens = static_cast<double>(tokens);
  const auto step = std::make_shared<rotary::step_table<float>>(spectrum(), rotary::mrope_chunked({16, 24, 24}));
  m.calls = [=](std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      step->assign(rotary::axis_major(ids.data(), 3, tokens));
      keep(step->view().cos);
    }
  };
  comparison c;
  c.name = std::string("step_table, 4096 rows of three axes, ") + name + ", per row";
  c.measured = g.add(std::move(m));
  c.fixed_floor = 60;
  c.limit = 1;
  g.comparisons.push_back(c);
}

group range_tables() {
  group g;
  g.name = "range tables";
  add_range_table<float>(g, 131072, 1.4);
  add_range_table<rotary::bfloat16>(g, 131072, 0);
  return g;
}

std::string allocations_of_steps() {
  rotary::step_table<float> step(spectrum());
  const std::vector<std::int64_t> at = positions_below(0);
  step.assign(at.data(), at.size());
  const std::uint64_t before = allocations();
  for (std::size_t tokens = 1; tokens <= at.size(); tokens *= 2) step.assign(at.data(), tokens);
  return std::to_string(allocations() - before) + " allocations after the first use";
}

group step_tables() {
  group g;
  g.name = "step tables";
  add_step_row(g, "positions below 65536", 65536, 40);
  add_step_row(g, "any position below 2^31", std::uint64_t{1} << 31, 70);
  add_step_row(g, "any position of 64 bits", 0, 70);
  g.comparisons.back().note = allocations_of_steps();
  add_three_axes(g, "an image of 64 x 64 patches", image_positions());
  add_three_axes(g, "positions in no order", positions_below(65536, std::size_t{3} * 4096));
  return g;
}

}  // namespace

std::vector<group_maker> table_groups() { return {range_tables, step_tables}; }

}  // namespace bench
