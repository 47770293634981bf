#!/usr/bin/env python3
"""Ten minutes of mixed load, and how much memory the server holds.

    bench/http/soak.py SLIDE [SLIDE ...] [--minutes 10] [--microtome bin/microtome]

Eight wrk connections ask for random stored tiles, levels between stored ones,
and regions of every slide; resident memory is read from /proc once a second.
Prints the highest of each minute, of minutes 2-5, of minutes 6-10, their ratio.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request

from compare import HERE, Processes

PORT = 9321


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024


def paths_of(base, n, rng):
    with urllib.request.urlopen("http://127.0.0.1:%d/slides/%s" % (PORT, base)) as r:
        level = json.load(r)["levels"][0]
    width, height, tile = level["width"], level["height"], level["tile_width"]
    top = (max(width, height) - 1).bit_length()
    for _ in range(n):
        kind = rng.random()
        if kind < 0.9:
            k = 0 if kind < 0.6 else rng.randrange(1, 6)
            w, h = -(-width >> k) or 1, -(-height >> k) or 1
            yield "/deepzoom/%s_files/%d/%d_%d.jpg" % (base, top - k, rng.randrange(-(-w // tile)), rng.randrange(-(-h // tile)))
        else:
            yield "/slides/%s/region?x=%d&y=%d&width=256&height=256&downsample=%g&format=png" % (
                base, rng.randrange(width), rng.randrange(height), rng.choice([1, 2, 3.7]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("slides", nargs="+")
    ap.add_argument("--minutes", type=int, default=10)
    ap.add_argument("--microtome", default=os.path.join(HERE, "../../bin/microtome"))
    a = ap.parse_args()
    processes = Processes()
    try:
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(s)) for s in a.slides])
        server = processes.start("microtome", [a.microtome, "serve", folder, "--listen", "127.0.0.1:%d" % PORT], PORT, "/healthz")
        rng = random.Random(3)
        with tempfile.NamedTemporaryFile("w", suffix=".paths") as f:
            lines = [p for s in a.slides for p in paths_of(os.path.relpath(os.path.abspath(s), folder), 40000 // len(a.slides), rng)]
            rng.shuffle(lines)
            f.write("\n".join(lines) + "\n")
            f.flush()
            load = subprocess.Popen(["wrk", "-t1", "-c8", "-d%ds" % (a.minutes * 60), "-s", os.path.join(HERE, "random_tiles.lua"),
                                     "http://127.0.0.1:%d/" % PORT], env=dict(os.environ, PATHS=f.name), stdout=subprocess.PIPE, text=True)
            begin, highest = time.time(), {}
            while load.poll() is None:
                minute = int((time.time() - begin) / 60) + 1
                highest[minute] = max(highest.get(minute, 0), resident(server.pid))
                time.sleep(1)
            out = load.stdout.read()
    finally:
        processes.stop()
    for minute, mb in sorted(highest.items()):
        if minute <= a.minutes:
            print("minute %2d: at most %6.1f MB resident" % (minute, mb))
    early = [v for m, v in highest.items() if 2 <= m <= 5]
    late = [v for m, v in highest.items() if 6 <= m <= a.minutes]
    if early and late:
        print("minutes 2-5: %.1f MB; minutes 6-%d: %.1f MB; ratio %.3f" % (max(early), a.minutes, max(late), max(late) / max(early)))
    print("\n".join(l for l in out.splitlines() if "RESULT" in l or "requests in" in l or "Non-2xx" in l))


if __name__ == "__main__":
    main()
