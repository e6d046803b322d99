"""Draws the pictures of docs/scaling.md (needs matplotlib):

    build/test/tests/docs/scaling_curves tests/data | python3 tests/docs/plot_scaling.py docs/pictures
"""

import json
import math
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the backend)

# One look for all, and files that do not change with the day or the machine.
plt.rcParams.update({"svg.hashsalt": "rotary", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"})
COLOURS = ["#888888", "#0072b2", "#d55e00", "#009e73", "#cc79a7"]
STYLES = ["-", "-", "--", "-.", ":"]


def draw(picture, path):
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    for number, curve in enumerate(picture["curves"]):
        turning = [(j, 2 * math.pi / w) for j, w in enumerate(curve["inv_freq"]) if w > 0]
        points = {"marker": ".", "linestyle": "none"} if picture["name"] == "axial" and number else {
            "linestyle": STYLES[number]}
        axes.plot(*zip(*turning), color=COLOURS[number], label=curve["label"], linewidth=1.4, markersize=4, **points)
    for label, tokens in picture["contexts"].items():
        axes.axhline(tokens, color="#bbbbbb", linewidth=0.8, zorder=0)
        axes.annotate(f"{label}: {tokens}", (0, tokens), xytext=(2, 2), textcoords="offset points", color="#777777")
    axes.set_yscale("log")
    axes.set_xlabel("pair")
    axes.set_ylabel("wavelength (tokens)")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    directory, suffix = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else "svg"
    directory.mkdir(parents=True, exist_ok=True)
    for picture in json.load(sys.stdin):
        draw(picture, directory / f"scaling-{picture['name']}.{suffix}")


if __name__ == "__main__":
    main()
