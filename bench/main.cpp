// Prints each case's time beside its floor's, measured in the same run. See README.md.
#include "cases.hpp"
#include "memory.hpp"
#include "report.hpp"

int main(int argc, char** argv) {
  bench::keep_freed_memory();
  const bench::options chosen = bench::parse(argc, argv);
  bench::report report;
  if (chosen.sweep) {
    for (const bench::sweep_point& point : bench::sweep()) {
      bench::group g = point.make();
      if (bench::run(g, chosen)) report.add_sweep_point(point.type, point.tokens, g);
    }
    report.finish(chosen.json);
    return 0;
  }
  report.start();
  for (const auto& groups : {bench::in_place_groups(chosen.quick), bench::shape_groups(chosen.quick),
                             bench::out_of_place_groups(chosen.quick), bench::table_groups(), bench::call_groups(),
                             bench::cache_groups(chosen.quick), bench::norm_groups(chosen.quick)}) {
    for (const bench::group_maker& make : groups) {
      bench::group g = make();
      if (bench::run(g, chosen)) report.add(g);
    }
  }
  report.finish(chosen.json);
}
