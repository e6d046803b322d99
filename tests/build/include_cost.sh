#!/usr/bin/env bash
# What `#include <rotary/rotary.hpp>` costs over an empty file:
#   tests/build/include_cost.sh <compiler> <include directory> <limit in millions of instructions> <directory for files>
# The limit is one of instructions that the compiler executes, which no busy machine changes. The least processor time of
# some rounds is printed beside it.
set -euo pipefail
export LC_ALL=C
compiler=$1 include=$2 limit=$3 work=$4
rounds=5

mkdir -p "$work"
printf 'int main() {}\n' >"$work/empty.cpp"
printf '#include <rotary/rotary.hpp>\nint main() {}\n' >"$work/library.cpp"

compile() { # compile <name> <more arguments>...
  local name=$1
  shift
  "$compiler" -std=c++17 -O2 "-I$include" "$@" -c "$work/$name.cpp" -o "$work/$name.o"
}

# Millions of instructions of the compiler proper; the assembler's come second.
instructions() {
  compile "$1" -wrapper valgrind,--tool=callgrind,--callgrind-out-file=/dev/null 2>&1 |
    awk '/Collected/ && !seen { seen = 1; printf "%d\n", $4 / 1000000 }'
}

# The least milliseconds of processor time.
milliseconds() {
  local TIMEFORMAT='%3U %3S'
  for ((round = 0; round < rounds; ++round)); do
    { time compile "$1"; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1000 }'
  done | sort -n | head -1
}

compile empty
compile library
with=$(instructions library) without=$(instructions empty)
count=$((${with:?no count} - ${without:?no count}))
elapsed=$(($(milliseconds library) - $(milliseconds empty)))
echo "including rotary.hpp costs $count million instructions over an empty file (limit $limit), here $elapsed ms of $compiler"
[ "$count" -gt 0 ] && [ "$count" -le "$limit" ]
