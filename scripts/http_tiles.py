#!/usr/bin/env python3
"""Stored tiles over HTTP against other people's decoders.

    scripts/http_tiles.py BIN SLIDE [COUNT]

Serves the slide, asks for COUNT random stored tiles of every level, and holds
three decodes of each against one another: Pillow's of the stream as it came,
tifffile's of the tile in the file, and our own raw region. Edge tiles leave
losslessly cropped; there raw and tifffile must agree, and the stream may differ
in its last row and column.
"""
import io
import json
import os
import random
import re
import subprocess
import sys
import urllib.request

import numpy as np
import tifffile
from PIL import Image


def get(url):
    with urllib.request.urlopen(url, timeout=60) as r:
        return r.read(), r.headers


def pages_by_size(path):
    return {(p.imagewidth, p.imagelength): p for p in tifffile.TiffFile(path).pages if p.is_tiled}


def stored(page, col, row, cols):
    index = row * cols + col
    handle = page.parent.filehandle
    handle.seek(page.dataoffsets[index])
    data = handle.read(page.databytecounts[index])
    return page.decode(data, index, jpegtables=page.jpegtables)[0][0]


def check(base, level, grid, page, col, row):
    """Returns the three differences: stream to tifffile, raw to tifffile, and
    whether the tile was cropped."""
    width = min(grid["tile_width"], grid["width"] - col * grid["tile_width"])
    height = min(grid["tile_height"], grid["height"] - row * grid["tile_height"])
    address = "%s/levels/%d/tiles/%d/%d" % (base, level, col, row)
    body, head = get(address)
    picture = np.asarray(Image.open(io.BytesIO(body)).convert("RGB")).astype(int)
    raw = np.frombuffer(get(address + "?format=raw")[0], np.uint8).reshape(height, width, -1).astype(int)
    want = stored(page, col, row, grid["columns"])[:height, :width].astype(int)
    if picture.shape != want.shape or raw.shape != want.shape:
        raise SystemExit("%s: shapes %s, %s, %s" % (address, picture.shape, raw.shape, want.shape))
    cropped = head["Microtome-Tile"].startswith("cropped")
    if cropped:
        picture, inner = picture[:-1, :-1], want[:-1, :-1]
    else:
        inner = want
    return np.abs(picture - inner).max(initial=0), np.abs(raw - want).max(), cropped


def main():
    binary, path, count = sys.argv[1], os.path.abspath(sys.argv[2]), int((sys.argv + ["40"])[3])
    server = subprocess.Popen([binary, "serve", path, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        root = re.search(r"http://\S+?/", server.stdout.readline()).group(0)
        base = root + "slides/" + os.path.basename(path)
        info = json.loads(get(base)[0])
        pages, rng, worst, n, edges = pages_by_size(path), random.Random(1), 0, 0, 0
        for level, grid in enumerate(info["levels"]):
            page = pages[(grid["width"], grid["height"])]
            last = (grid["columns"] - 1, grid["rows"] - 1)
            spots = [(rng.randrange(grid["columns"]), rng.randrange(grid["rows"])) for _ in range(count)] + [(0, 0), last]
            for col, row in spots:
                stream, raw, cropped = check(base, level, grid, page, col, row)
                worst, n, edges = max(worst, stream, raw), n + 1, edges + cropped
        print("%s: %d stored tiles (%d of them cropped): Pillow, tifffile and raw differ by at most %d" % (os.path.basename(path), n, edges, worst))
        return 1 if worst else 0
    finally:
        server.terminate()
        server.wait()


sys.exit(main())
