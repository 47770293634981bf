"""Decodes slides by tifffile and OpenSlide and compares them with what was painted.

Reads a JSON list of cases from the file named by the only argument; prints one line
per failure, nothing when all is right."""
import json
import sys

import numpy as np
import openslide
import tifffile


def difference(a, b):
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


def check_tifffile(c):
    with tifffile.TiffFile(c["path"]) as t:
        series = t.series[0]
        levels = series.levels
        if c["planes"]:
            got = levels[0].asarray().reshape(c["planes"], c["height"], c["width"])
        else:
            got = levels[0].asarray()
            if got.shape[0] == 3 and got.ndim == 3 and c["planar"]:
                got = np.moveaxis(got, 0, -1)
            if c["svs"]:
                got = t.pages[0].asarray()
        want = np.fromfile(c["raw"], np.uint8).reshape(got.shape)
        if c["sparse"]:  # absent tiles are zeros to tifffile
            got, want = got[got != 0], want[got != 0]
        # Nor does it know that 33003 holds YCbCr.
        if not c["ycc"] and (d := difference(got, want)) > c["tolerance"]:
            yield f"tifffile: level 0 differs by {d:.2f}"
        if not c["svs"] and len(levels) != c["levels"]:
            yield f"tifffile: {len(levels)} levels, not {c['levels']}"
        for p in t.pages:
            p.asarray()
        for level in levels:
            level.asarray()


def check_openslide(c):
    with openslide.OpenSlide(c["path"]) as s:
        if s.dimensions != (c["width"], c["height"]):
            yield f"openslide: size {s.dimensions}"
        if s.level_count != c["levels"]:
            yield f"openslide: {s.level_count} levels, not {c['levels']}"
        rgba = s.read_region((0, 0), 0, s.dimensions)
        flat = np.asarray(rgba)[..., :3]
        want = np.fromfile(c["raw"], np.uint8).reshape(c["height"], c["width"], 3)
        if c["sparse"]:
            keep = np.asarray(rgba)[..., 3] == 255
            flat, want = flat[keep], want[keep]
        if (d := difference(flat, want)) > c["tolerance"]:
            yield f"openslide: level 0 differs by {d:.2f}"
        for i, size in enumerate(s.level_dimensions):
            s.read_region((0, 0), i, size)
        names = sorted(s.associated_images)
        if names != c["associated"]:
            yield f"openslide: associated {names}"
        for n in names:
            s.associated_images[n].load()
        vendor = s.properties["openslide.vendor"]
        if vendor != ("aperio" if c["svs"] else "generic-tiff"):
            yield f"openslide: vendor {vendor}"
        if c["svs"] and s.properties.get("openslide.mpp-x") != "0.499":
            yield "openslide: mpp"


for case in json.load(open(sys.argv[1])):
    checks = [check_tifffile] + ([check_openslide] if case["openslide"] else [])
    for check in checks:
        try:
            for fault in check(case):
                print(case["name"], fault)
        except Exception as e:  # every reader's own kind of failure
            print(case["name"], check.__name__, repr(e))
