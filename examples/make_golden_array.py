#!/usr/bin/env python3
"""Writes examples/golden_llama3.hpp: one record of the reference data as C++ arrays, so that the quickstart needs no
JSON library. Run from anywhere, without arguments; the files are found from this script's place.
"""
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "golden"
ROTATION, SPECTRUM = "fwd-llama3", "llama-3.1-8b"


def record(file, name):
    records = json.loads((DATA / file).read_text())["records"]
    return next(r for r in records if r["name"] == name)


def generate_input(seed, scale, count):
    """The generator of tests/data/golden/README.md; every value is exact in float."""
    x, values = seed, []
    for _ in range(count):
        x = (1664525 * x + 1013904223) % 2**32
        values.append(scale * ((x >> 8) / 2**23 - 1))
    return values


def literal(value):
    text = f"{value:.9g}"  # 9 digits give every float back
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


def array(name, comment, values):
    lines, line = [], " "
    for text in (literal(v) + "," for v in values):
        if len(line) + 1 + len(text) > 120:
            lines.append(line)
            line = " "
        line += " " + text
    lines.append(line)
    return f"// {comment}\nconstexpr float {name}[{len(values)}] = {{\n" + "\n".join(lines) + "\n};\n"


def main():
    rotation, spectrum = record("rotations.json", ROTATION), record("spectra.json", SPECTRUM)
    tokens, heads, head_dim = (rotation[key] for key in ("tokens", "heads", "head_dim"))
    lcg = rotation["input_lcg"]
    values = generate_input(lcg["seed"], lcg["scale"], tokens * heads * head_dim)
    assert values[:4] == rotation["input_first"]
    assert rotation["hf"]["layout"] == "same" and rotation["pairing"] == "split_half" and rotation["dtype"] == "f32"
    positions = ", ".join(map(str, rotation["positions"]))
    text = f"""// Recorded results for Llama-3.1-8B. Written by make_golden_array.py from tests/data/golden (records "{ROTATION}"
// and "{SPECTRUM}"); change that, not this.
#ifndef ROTARY_EXAMPLES_GOLDEN_LLAMA3_HPP
#define ROTARY_EXAMPLES_GOLDEN_LLAMA3_HPP

#include <cstddef>
#include <cstdint>

// clang-format off
namespace golden_llama3 {{

constexpr std::size_t tokens = {tokens}, heads = {heads}, head_dim = {head_dim};
constexpr std::int64_t positions[tokens] = {{{positions}}};

{array("input", "[tokens, heads, head_dim], before the rotation", values)}
{array("exact", "After it, computed with 80 digits and rounded once.", rotation["expected"])}
{array("transformers", "After it, by the code of transformers 5.3 on the CPU, in float32.", rotation["hf"]["output"])}
{array("transformers_inv_freq", "Inverse frequencies as transformers computes them, in float32.",
       spectrum["hf_float32"]["inv_freq"])}
}}  // namespace golden_llama3

#endif
"""
    (ROOT / "examples" / "golden_llama3.hpp").write_text(text)


if __name__ == "__main__":
    main()
