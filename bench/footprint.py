#!/usr/bin/env python3
"""What the library costs a program that uses it: the time to include it, and the size of its code.

usage: footprint.py [--compiler g++ ...] [--include include] [--rounds 15] [--json path]

Times are processor time, differences of the least of many compilations: what other work on the machine disturbs least,
and the same as time on the clock where there is none. Sizes are text and data, as `size` counts them, of a program with
one rotation over one without.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile

INCLUDE_LIMIT, KERNELS_LIMIT = 120, 25  # milliseconds, with g++ 12

# What the kernels include before themselves; the difference is their own share.
BEFORE_KERNELS = "#include <type_traits>\n#include <utility>\n#include <rotary/detail/job.hpp>\n"
SOURCES = {
    "empty": "",
    "library": "#include <rotary/rotary.hpp>\n",
    "before kernels": BEFORE_KERNELS,
    "kernels": BEFORE_KERNELS + "#include <rotary/detail/backends.hpp>\n",
}

# One dtype is float data with a float table, in place; the pairing is a constant, as in an engine of one model.
ROTATION = """void {name}({type}* x, const rotary::table<float>& table, int position) {{
  rotary::rotate(rotary::thd(x, 1, 32, 128), table, position, rotary::pairing::{pairing});
}}
"""
TABLE = """rotary::table<float> make_table() { return rotary::table<float>(rotary::make_spectrum(128, 1e4), 64); }
"""


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def milliseconds(compiler, include, source, work):
    path = os.path.join(work, "source.cpp")
    with open(path, "w") as file:
        file.write(source)
    command = [compiler, "-std=c++17", "-O2", "-I", include, "-c", path, "-o", os.path.join(work, "source.o")]
    before = processor_seconds()
    subprocess.run(command, check=True)
    return 1000 * (processor_seconds() - before)


def include_times(compiler, include, rounds, work):
    times = {name: [] for name in SOURCES}
    for _ in range(rounds):
        for name, source in SOURCES.items():
            times[name].append(milliseconds(compiler, include, source, work))
    return {name: min(values) for name, values in times.items()}


def linked_size(compiler, include, rotations, work):
    """Bytes of text and data of a linked program with these (type, pairing)."""
    source = "#include <rotary/rotary.hpp>\n" + TABLE
    calls = ""
    for index, (kind, pairing) in enumerate(rotations):
        source += ROTATION.format(name=f"rotate{index}", type=kind, pairing=pairing)
        calls += f"  rotate{index}(static_cast<{kind}*>(x), table, 1);\n"
    source += "void* x;\nint main() {\n  const auto table = make_table();\n  x = const_cast<float*>(table.view().cos);\n"
    source += calls + "}\n"
    path, program = os.path.join(work, "program.cpp"), os.path.join(work, "program")
    with open(path, "w") as file:
        file.write(source)
    options = ["-std=c++17", "-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-I", include]
    subprocess.run([compiler, *options, path, "-o", program], check=True)
    text = subprocess.run(["size", program], check=True, capture_output=True, text=True).stdout.splitlines()[1].split()
    return int(text[0]) + int(text[1])


def sizes(compiler, include, work):
    half, other = "split_half", "interleaved"
    none = linked_size(compiler, include, [], work)
    one = linked_size(compiler, include, [("float", half)], work)
    yield "tables without rotation", none
    yield "float, one pairing, adds", one - none
    yield "its second pairing adds", linked_size(compiler, include, [("float", half), ("float", other)], work) - one
    for kind in ("rotary::bfloat16", "rotary::float16"):
        more = linked_size(compiler, include, [("float", half), (kind, half)], work)
        yield f"a second dtype, {kind}, adds", more - one


def measure(compiler, include, rounds, work):
    def row(what, value, unit, limit=0):
        verdict = "" if not limit else "pass" if value <= limit else "SHORT"
        return {"compiler": os.path.basename(compiler), "what": what, "value": value, "unit": unit, "limit": limit,
                "verdict": verdict}

    times = include_times(compiler, include, rounds, work)
    limited = "clang" not in compiler
    yield row("include rotary.hpp, over an empty file", times["library"] - times["empty"], "ms", limited * INCLUDE_LIMIT)
    yield row("the kernels' share", times["kernels"] - times["before kernels"], "ms", limited * KERNELS_LIMIT)
    for what, size in sizes(compiler, include, work):
        yield row(f"code size: {what}", size / 1024, "KB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", nargs="+", default=["g++"])
    parser.add_argument("--include", default=os.path.join(os.path.dirname(__file__), "..", "include"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for compiler in arguments.compiler:
            for row in measure(compiler, arguments.include, arguments.rounds, work):
                limit = f"limit {row['limit']} {row['unit']}" if row["limit"] else ""
                print(f"{row['compiler']:<12} {row['what']:<50} {row['value']:8.1f} {row['unit']:<3} {limit:<14} "
                      f"{row['verdict']}", flush=True)
                rows.append(row)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"footprint": rows}, file, indent=1)


if __name__ == "__main__":
    main()
