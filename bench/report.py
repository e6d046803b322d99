#!/usr/bin/env python3
"""Turns the JSON of rotary_bench, and of footprint.py, into the tables of a Markdown page.

usage: report.py --markdown bench.json... [footprint.json]
       report.py --markdown --replace bench/results/<machine>.md bench.json... \
           [footprint.json]

Of several runs each row is that of the run whose ratio is the median. --replace writes the tables between the lines
`<!-- results -->` and `<!-- end of results -->` of the page.
"""

import argparse
import json
import re


def number(value, digits):
    return f"{value:.{digits}f}" if value else ""


def verdict_of(row):
    verdict = {"pass": "pass", "SHORT": "**short**"}.get(row["verdict"], "")
    return f"{verdict} ({row['note']})".strip() if row["note"] else verdict


def timing_table(rows):
    yield "| case | ns/token | GB/s | floor | ns/token | ratio | limit | |"
    yield "| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"
    for row in rows:
        yield (f"| {row['case']} | {row['ns_per_token']:.1f} | {row['gb_per_s']:.1f} | {row['floor']} "
               f"| {number(row['floor_ns_per_token'], 1)} | {number(row['ratio'], 2)} | {number(row['limit'], 2)} "
               f"| {verdict_of(row)} |")


def median_rows(runs):
    """Of each case the row whose ratio is the median of all runs, in the order of the first."""
    cases = {}
    for rows in runs:
        for row in rows:
            cases.setdefault(row["case"], []).append(row)
    return [sorted(rows, key=lambda row: row["ratio"])[len(rows) // 2] for rows in cases.values()]


def footprint_table(rows):
    yield "| compiler | what | figure | limit | |"
    yield "| --- | --- | ---: | ---: | --- |"
    for row in rows:
        limit = f"{row['limit']} {row['unit']}" if row["limit"] else ""
        yield f"| {row['compiler']} | {row['what']} | {row['value']:.0f} {row['unit']} | {limit} | {row['verdict']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", required=True)
    parser.add_argument("--replace", metavar="page", help="write into this page instead of to standard output")
    parser.add_argument("json", nargs="+")
    arguments = parser.parse_args()

    files = []
    for path in arguments.json:
        with open(path) as file:
            files.append(json.load(file))
    lines = []
    runs = [data for data in files if data.get("rows")]
    if runs:
        context = runs[0]["context"]
        if any(data["context"][key] != context[key] for data in runs for key in ("cpu", "compiler", "backend")):
            parser.error("the runs are of different processors, compilers or backends")
        lines += [f"{context['cpu']}, {context['compiler']}, backends {context['backend']}:", ""]
        lines += [*timing_table(median_rows([data["rows"] for data in runs])), ""]
    for data in files:
        if data.get("footprint"):
            lines += [*footprint_table(data["footprint"]), ""]
    text = "\n".join(lines)
    if not arguments.replace:
        print(text)
        return
    with open(arguments.replace) as file:
        page = file.read()
    begin, end = "<!-- results -->", "<!-- end of results -->"
    if begin not in page or end not in page:
        parser.error(f"{arguments.replace} lacks the lines {begin} and {end}")
    page = re.sub(re.escape(begin) + ".*" + re.escape(end), lambda _: f"{begin}\n\n{text}\n{end}", page, flags=re.S)
    with open(arguments.replace, "w") as file:
        file.write(page)


if __name__ == "__main__":
    main()
