#!/usr/bin/env bash
# Compares the time to compile `#include <rotary/rotary.hpp>` with that of an empty file:
#   tests/build/include_time.sh <compiler> <include directory> <limit in ms> <directory for files>
# It counts processor time, since a busy machine makes a compiler wait; what noise is left only adds to a time, so the
# least of all rounds is nearest to the truth: the limit applies to the difference of the least times. The medians'
# difference is printed beside it.
set -euo pipefail
export LC_ALL=C
compiler=$1 include=$2 limit=$3 work=$4
rounds=15

mkdir -p "$work"
printf 'int main() {}\n' >"$work/empty.cpp"
printf '#include <rotary/rotary.hpp>\nint main() {}\n' >"$work/library.cpp"

# Prints the milliseconds of processor time that it takes to compile $1.cpp.
measure() {
  local TIMEFORMAT='%3U %3S'
  { time "$compiler" -std=c++17 -O2 "-I$include" -c "$work/$1.cpp" -o "$work/$1.o"; } 2>&1 |
    awk '{ printf "%d\n", ($1 + $2) * 1000 }'
}

measure library >"$work/library.ms" # warms the caches
: >"$work/empty.ms" >"$work/library.ms"
for ((round = 0; round < rounds; ++round)); do
  for name in empty library; do measure $name >>"$work/$name.ms"; done
done

nth() { sort -n "$work/$1.ms" | sed -n "$2p"; }
least=$(($(nth library 1) - $(nth empty 1)))
median=$(($(nth library $((rounds / 2 + 1))) - $(nth empty $((rounds / 2 + 1)))))
echo "including rotary.hpp costs $least ms (median $median ms) over an empty file; limit $limit ms, $rounds rounds of $compiler"
[ "$least" -le "$limit" ]
