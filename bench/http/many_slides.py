#!/usr/bin/env python3
"""Ten thousand slides in one root: time to the first answer, to a screen of
thumbnails (cold, then warm), and of a search.

    bench/http/many_slides.py [--slides 10000] [--microtome bin/microtome]
"""
import argparse
import concurrent.futures
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse

from compare import HERE, Processes, get

PORT = 9331


def timed(path):
    begin = time.perf_counter()
    body, _ = get(PORT, path)
    return time.perf_counter() - begin, body


def screen(names):
    """24 thumbnails over 6 connections, as a browser asks for them."""
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: get(PORT, "/slides/%s/thumbnail?size=256" % urllib.parse.quote(n)), names))
    return time.perf_counter() - begin


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--slides", type=int, default=10000)
    ap.add_argument("--microtome", default=os.path.join(HERE, "../../bin/microtome"))
    a = ap.parse_args()
    folder = tempfile.mkdtemp(prefix="microtome-many-")
    processes = Processes()
    try:
        root = os.path.join(folder, "slides")
        os.mkdir(root)
        seed = os.path.join(folder, "seed.svs")
        subprocess.run([a.microtome, "synth", seed, "--width", "1200", "--height", "900"], check=True, stdout=subprocess.DEVNULL)
        for i in range(a.slides):
            study = os.path.join(root, "study-%02d" % (i % 50))
            os.makedirs(study, exist_ok=True)
            shutil.copyfile(seed, os.path.join(study, "case-%05d.svs" % i))
        begin = time.perf_counter()
        processes.start("microtome", [a.microtome, "serve", root, "--listen", "127.0.0.1:%d" % PORT], PORT, "/healthz")
        print("started and healthy after        %7.1f ms" % ((time.perf_counter() - begin) * 1e3))
        took, _ = timed("/slides?recursive=true&limit=100")
        print("first answer of /slides          %7.1f ms" % (took * 1e3))
        names = ["study-%02d/case-%05d.svs" % (i % 50, i) for i in range(24)]
        print("24 thumbnails, cold              %7.1f ms" % (screen(names) * 1e3))
        print("24 thumbnails, warm (median)     %7.1f ms" % (statistics.median(screen(names) for _ in range(5)) * 1e3))
        time.sleep(2)
        for word in ("case-0777", "49/case", "nothing"):
            runs = [timed("/slides?recursive=true&limit=100&search=" + urllib.parse.quote(word)) for _ in range(9)]
            print("search %-24s  %7.1f ms (median of 9, %d bytes)" % (
                repr(word), statistics.median(t for t, _ in runs) * 1e3, len(runs[0][1])))
    finally:
        processes.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
