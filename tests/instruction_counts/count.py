#!/usr/bin/env python3
"""Counts the instructions of fixed calls under valgrind and compares them with counts.txt: a guard of speed that no
clock disturbs.

usage: count.py --program build/test/tests/instruction_counts/instruction_counts [--update]

--update writes counts.txt anew. Do it, in a commit of its own, when a kernel has changed for a reason.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.05
COUNTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counts.txt")
HEAD = "# Instructions of each call in calls.cpp: backend, call, count. Written by count.py --update, with g++ 12.\n"


def calls_of_main(path):
    """{function: instructions of its last call from main, everything that it calls included}"""
    names, counts, caller, callee = {}, {}, "", None

    def name_of(text):  # "(12) name" defines, "(12)" repeats
        number, name = re.match(r"(\(\d+\))(?: (.*))?$", text).groups()
        if name:
            names[number] = name
        return names[number]

    with open(path) as file:
        lines = iter(file)
        for line in lines:
            key, _, value = line.rstrip("\n").partition("=")
            if key == "fn":
                caller = name_of(value)
            elif key == "cfn":
                callee = name_of(value)
            elif key == "calls":
                cost = next(lines).split()
                if caller == "main":
                    counts[callee] = int(cost[-1])
    return counts


def measure(program, backend):
    with tempfile.TemporaryDirectory() as work:
        output = os.path.join(work, "callgrind.out")
        command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={output}", "--compress-pos=no", program,
                   backend]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if "unavailable" in printed:
            return {}
        counts = calls_of_main(output)
    with open(os.path.join(os.path.dirname(COUNTS), "calls.cpp")) as file:
        measured = re.findall(r"^MEASURED (\w+)\(", file.read(), flags=re.M)
    if missing := [name for name in measured if name not in counts]:
        sys.exit(f"valgrind counted no calls of {', '.join(missing)}")
    return {name: counts[name] for name in measured}


def read_expected():
    with open(COUNTS) as file:
        fields = [line.split() for line in file if not line.startswith("#")]
    return {(backend, name): int(count) for backend, name, count in fields}


def compare(measured, expected):
    """Prints a line for each call; returns the number of those that differ by more than the tolerance."""
    differing = 0
    for (backend, name), count in measured.items():
        known = expected.get((backend, name), 0)
        change = count / known - 1 if known else 0
        bad = not known or abs(change) > TOLERANCE
        note = "" if not bad else "not in counts.txt" if not known else "more than 5 % off: " + (
            "slower?" if change > 0 else "faster: run with --update")
        print(f"{backend:<9} {name:<34} {count:>9} {known:>9} {100 * change:+6.1f} %  {note}")
        differing += bad
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    measured = {}
    for backend in ("baseline", "avx2"):
        counts = measure(arguments.program, backend)
        if not counts:
            print(f"{backend}: this CPU, or valgrind's, lacks it")
        measured.update({(backend, name): count for name, count in counts.items()})
    if arguments.update:
        with open(COUNTS, "w") as file:
            file.write(HEAD)
            file.writelines(f"{backend:<9} {name:<34} {count:>9}\n" for (backend, name), count in measured.items())
        return
    expected = read_expected()
    gone = {key for key in expected if key not in measured and any(key[0] == backend for backend, _ in measured)}
    for backend, name in sorted(gone):
        print(f"{backend} {name}: in counts.txt, but no longer measured")
    sys.exit(compare(measured, expected) + len(gone) != 0)


if __name__ == "__main__":
    main()
