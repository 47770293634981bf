"""Other readers of slides, as child processes of `microtome bench`.

usage: peers.py ENGINE SLIDE CPUS

Answers one line of JSON with one line of JSON: see child.go. CPUS are numbers
with commas between, or "-" for all.
"""
import http.client
import json
import os
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

ENGINE, SLIDE, CPUS = sys.argv[1:4]
if CPUS != "-":
    os.sched_setaffinity(0, {int(c) for c in CPUS.split(",")})

import numpy as np  # after the affinity: it starts threads


class OpenSlide:
    def __init__(self):
        import openslide
        self.lib = openslide
        self.slide = openslide.OpenSlide(SLIDE)
        self.version = openslide.__library_version__

    def empty(self, cache):
        self.slide.set_cache(self.lib.OpenSlideCache(cache))

    def read(self, x, y, n):
        return np.asarray(self.slide.read_region((x, y), 0, (n, n)))

    def rgb(self, x, y, n):
        # As its own users make RGB of it: over white.
        return np.asarray(self.slide.read_region((x, y), 0, (n, n)).convert("RGB"))


class CuCIM:
    def __init__(self):
        import cucim
        from cucim import CuImage
        self.open = CuImage
        self.version = cucim.__version__
        self.empty(32 << 20)

    def empty(self, cache):
        self.open.cache("per_process", memory_capacity=max(cache >> 20, 1))
        self.slide = self.open(SLIDE)

    def read(self, x, y, n):
        return np.asarray(self.slide.read_region((x, y), (n, n), 0))

    rgb = read


class CuCIMGPU(CuCIM):
    """cuCIM's own way to the GPU: the pixels stay there."""
    batch = 64

    def __init__(self):
        import cupy
        super().__init__()
        self.cupy = cupy
        self.version += ", device=cuda"

    def many(self, at, n):
        got = self.slide.read_region(at, (n, n), 0, batch_size=1, num_workers=8, device="cuda")
        out = [self.cupy.asarray(p) for p in got]
        self.cupy.cuda.runtime.deviceSynchronize()
        return out

    def sums(self, got):
        return [zlib.crc32(np.ascontiguousarray(self.cupy.asnumpy(p).reshape(p.shape[-3:])[..., :3])) for p in got]


class FastSlide:
    def __init__(self):
        import fastslide
        self.lib = fastslide
        self.version = getattr(fastslide, "__version__", "unknown")
        self.empty(0)

    def empty(self, cache):
        self.slide = self.lib.FastSlide.from_file_path(SLIDE)
        if cache:
            self.slide.set_cache(cache)

    def read(self, x, y, n):
        return self.slide.read_region((x, y), 0, (n, n)).numpy()

    rgb = read


class TiffSlide:
    def __init__(self):
        import tiffslide
        self.lib = tiffslide
        self.version = tiffslide.__version__
        self.empty(0)

    def empty(self, cache):
        self.slide = self.lib.TiffSlide(SLIDE)

    def read(self, x, y, n):
        return self.slide.read_region((x, y), 0, (n, n), as_array=True)

    rgb = read


class Patches:
    """Our server, asked by one client for raw batches of 64. SLIDE is id@port."""
    batch = 64

    def __init__(self):
        self.id, port = SLIDE.rsplit("@", 1)
        self.http = http.client.HTTPConnection("127.0.0.1", int(port))
        self.version = "http.client, batches of 64"
        self.buffer = memoryview(bytearray(1 << 20))

    def empty(self, cache):
        pass  # the server is a new one

    def many(self, at, n):
        body = json.dumps({"slide": self.id, "width": n, "height": n, "channels": 3, "statuses": "last",
                           "items": [{"x": x, "y": y} for x, y in at]})
        self.http.request("POST", "/patches", body, {"Content-Type": "application/json"})
        r = self.http.getresponse()
        if r.status != 200:
            raise RuntimeError("%d %s" % (r.status, r.read()[:200]))
        size, got = int(r.headers["Content-Length"]), 0
        if size > len(self.buffer):
            self.buffer = memoryview(bytearray(size))
        while got < size:
            k = r.readinto(self.buffer[got:size])
            if k == 0:
                raise RuntimeError("the answer broke off")
            got += k
        pixels = len(at) * n * n * 3
        status = np.frombuffer(self.buffer, "<u2", count=4 * len(at), offset=64 + pixels)[::4]
        if (status != 200).any():
            raise RuntimeError("a patch failed: %s" % status)
        return np.frombuffer(self.buffer, np.uint8, count=pixels, offset=64).reshape(len(at), n, n, 3)


def run(engine, q):
    if q["cold"]:
        engine.empty(q["cache"])
    at, n, sums = [(a["X"], a["Y"]) for a in q["at"]], q["patch"], []
    start = time.perf_counter()
    if hasattr(engine, "many"):
        for i in range(0, len(at), engine.batch):
            got = engine.many(at[i:i + engine.batch], n)
            if q["sum"] and hasattr(engine, "sums"):
                sums += engine.sums(got)
            elif q["sum"]:
                sums += [zlib.crc32(np.ascontiguousarray(p)) for p in got]
    elif q["callers"] == 1:
        for x, y in at:
            engine.read(x, y, n)
    else:
        with ThreadPoolExecutor(q["callers"]) as pool:
            for _ in pool.map(lambda a: engine.read(a[0], a[1], n), at):
                pass
    took = time.perf_counter() - start
    if q["sum"] and not sums:
        sums = [zlib.crc32(np.ascontiguousarray(engine.rgb(x, y, n)[..., :3])) for x, y in at]
    out = {"seconds": took}
    if q["sum"]:
        out["sum"] = "[" + " ".join("%08x" % s for s in sums) + "]"
    return out


def main():
    try:
        engine = {"openslide": OpenSlide, "cucim": CuCIM, "cucim-gpu": CuCIMGPU, "fastslide": FastSlide, "tiffslide": TiffSlide,
                  "patches": Patches}[ENGINE]()
    except Exception as e:  # whatever a package fails with is its answer
        print(json.dumps({"error": "%s: %s" % (type(e).__name__, e)}), flush=True)
        return
    print(json.dumps({"version": str(engine.version)}), flush=True)
    for line in sys.stdin:
        try:
            out = run(engine, json.loads(line))
        except Exception as e:
            out = {"error": "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(out), flush=True)


main()
