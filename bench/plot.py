#!/usr/bin/env python3
"""Draws GB/s over the size of the working set, from the JSON of `rotary_bench --sweep --json=<path>`.

usage: plot.py sweep.json docs/performance     (writes docs/performance.png and docs/performance.svg)
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TYPES = {"f32": "float", "bf16": "bfloat16"}
STYLES = {  # series: label, colour, line, marker, order
    "floor": ("floor: x *= c, or load and store for 16 bits", "0.35", "--", "", 1),
    "half": ("rotary, split halves", "tab:blue", "-", "o", 4),
    "interleaved": ("rotary, interleaved", "tab:orange", "-", "s", 3),
    "plain loop over a table": ("plain loop over a table", "tab:green", "-", "^", 2),
    "recurrence, cos and sin per token": ("cos and sin per token, by recurrence", "tab:purple", "-", "v", 2),
    "pow, cos and sin per pair": ("pow, cos and sin per pair", "tab:red", "-", "x", 2),
}


def size_name(size):
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GB"


def draw_type(axes, points, caches):
    sizes = [point["bytes"] for point in points]
    low, high = min(sizes) / 1.5, max(sizes) * 1.5
    for series, (label, color, line, marker, order) in STYLES.items():
        chosen = sorted((p["bytes"], p["gb_per_s"]) for p in points if p["series"] == series)
        if chosen:
            axes.plot(*zip(*chosen), line, color=color, marker=marker, markersize=4, label=label, zorder=order)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    ticks = [2**power for power in range(10, 33, 3) if low <= 2**power <= high]
    axes.set_xticks(ticks, [size_name(tick) for tick in ticks])
    axes.set_yticks([1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.4)
    axes.grid(color="0.9")
    for cache in caches:
        if low < cache["bytes"] < high:
            axes.axvline(cache["bytes"], color="0.6", linewidth=1, linestyle=":")
            axes.annotate(f" L{cache['level']}", (cache["bytes"], 0.01), xycoords=("data", "axes fraction"), color="0.4")
    axes.set_xlabel("q and k of the call (32 + 8 heads of 128)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json")
    parser.add_argument("output", help="path without a suffix")
    arguments = parser.parse_args()
    with open(arguments.json) as file:
        data = json.load(file)
    if not data["sweep"]:
        parser.error(f"{arguments.json} holds no sweep: run rotary_bench --sweep")

    plt.rcParams.update({"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "rotary"})
    figure, panels = plt.subplots(1, len(TYPES), figsize=(11, 5), sharey=True, layout="constrained")
    for axes, (name, title) in zip(panels, TYPES.items()):
        draw_type(axes, [point for point in data["sweep"] if point["type"] == name], data["context"]["caches"])
        axes.set_title(title)
    panels[0].set_ylabel("GB/s read and written, one thread")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
    figure.get_layout_engine().set(rect=(0, 0.11, 1, 0.89))  # room for it; newer versions know "outside lower center"
    context = data["context"]
    busy = f" (machine busy, load {context['load']:.1f})" if context.get("load", 0) > 0.5 else ""
    figure.suptitle(f"Rotation in place on {context['cpu']}, {context['compiler']}{busy}", fontsize=11)
    figure.savefig(arguments.output + ".png", dpi=110, metadata={"Software": None})
    figure.savefig(arguments.output + ".svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
