#!/usr/bin/env python3
"""Deep Zoom tiles over HTTP, Microtome beside its peers in one run.

    bench/http/compare.py SLIDE [--tiff TWIN] [--trials 5] [--seconds 6] [--json FILE]

Needs wrk and nginx (apt: wrk nginx-light), and for the peers a Python with
flask, gunicorn, openslide-python, openslide-bin (--python) and iipsrv (apt:
iipimage-server). A peer that is not there is named and left out. Every figure
is the median of trials that take turns, and every ratio is taken trial by trial.
"""
import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
MICROTOME, NGINX, OPENSLIDE, IIPSRV = 9301, 9302, 9303, 9304


def log(*words):
    print(*words, file=sys.stderr, flush=True)


def get(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=30) as r:
        return r.read(), r.headers


class Processes:
    def __init__(self):
        self.all = []

    def start(self, name, argv, port, probe, **kw):
        p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
        self.all.append(p)
        for _ in range(200):
            if p.poll() is not None:
                raise SystemExit("%s ended: %s" % (name, p.stderr.read().decode()[-400:]))
            try:
                get(port, probe)
                return p
            except Exception:
                time.sleep(0.05)
        raise SystemExit("%s does not answer on port %d" % (name, port))

    def stop(self):
        for p in reversed(self.all):
            p.send_signal(signal.SIGTERM)
        for p in self.all:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()


def wrk(port, paths_file, seconds, seed, once=False):
    env = dict(os.environ, PATHS=paths_file, SEED=str(seed), ONCE="1" if once else "")
    out = subprocess.run(
        ["wrk", "-t1", "-c8", "-d%ds" % seconds, "-s", os.path.join(HERE, "random_tiles.lua"), "http://127.0.0.1:%d/" % port],
        env=env, capture_output=True, text=True, check=True).stdout
    rate, errors, p50, p99, wrapped = [l for l in out.splitlines() if l.startswith("RESULT")][0].split()[1:]
    if wrapped == "1":
        raise SystemExit("the paths ran out within %d s, so the rest was warm: use fewer --cold-seconds" % seconds)
    return {"rate": float(rate), "errors": int(errors), "p50_ms": float(p50), "p99_ms": float(p99)}


def grid(width, height, tile, n, rng):
    cols, rows = -(-width // tile) - 1, -(-height // tile) - 1
    return [(rng.randrange(cols), rng.randrange(rows)) for _ in range(n)]


def write_lines(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path


def nginx_config(folder, open_files=0):
    """Plain nginx, or with the descriptors of so many files kept open."""
    config = """
worker_processes 2; worker_rlimit_nofile 20000; daemon off; pid {d}/nginx.pid; error_log {d}/nginx.log;
events {{ worker_connections 256; }}
http {{ access_log off; sendfile on; {cache} types {{ image/jpeg jpg; }}
  client_body_temp_path {d}/b; proxy_temp_path {d}/p; fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
  upstream iip {{ server 127.0.0.1:9311; server 127.0.0.1:9312; }}
  server {{ listen 127.0.0.1:{port} reuseport; root {d}/tiles; keepalive_requests 1000000; }}
  server {{ listen 127.0.0.1:{iip}; keepalive_requests 1000000;
    location /iip {{ fastcgi_pass iip;
      fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri; }} }} }}
""".format(d=folder, port=NGINX, iip=IIPSRV, cache="open_file_cache max=%d;" % open_files if open_files else "")
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as f:
        f.write(config)
    return path


def turns(name, sides, trials, seconds, before=None, once=False):
    """Runs every side once a trial, in turn; returns each side's list. before
    is called ahead of each run."""
    results = {side: [] for side in sides}
    for trial in range(trials):
        for side, (port, paths) in sides.items():
            if before:
                before(side)
            results[side].append(wrk(port, paths, seconds, trial + 1, once))
            log("  %-28s %-10s %8.0f /s  p99 %6.2f ms  errors %d" % (
                name, side, results[side][-1]["rate"], results[side][-1]["p99_ms"], results[side][-1]["errors"]))
    return results


def median(runs, key="rate"):
    return statistics.median(r[key] for r in runs)


def ratio(ours, theirs):
    if not all(r["rate"] for r in theirs):
        raise SystemExit("the peer answered nothing in one of the trials")
    return statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, theirs))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("slide")
    ap.add_argument("--tiff", help="the slide as pyramidal TIFF, for iipsrv")
    ap.add_argument("--microtome", default=os.path.join(HERE, "../../bin/microtome"))
    ap.add_argument("--python", default=os.path.join(HERE, "../../.build/venv/bin/python"))
    ap.add_argument("--trials", type=int, default=5)
    ap.add_argument("--seconds", type=int, default=6)
    ap.add_argument("--only", choices=["nginx", "openslide", "iipsrv"], action="append", help="this peer (repeat for more); default all")
    ap.add_argument("--nginx-open-files", type=int, default=0, help="give nginx an open_file_cache of so many files")
    ap.add_argument("--cold-seconds", type=int, default=3)
    ap.add_argument("--json")
    a = ap.parse_args()
    folder = tempfile.mkdtemp(prefix="microtome-bench-")
    processes = Processes()
    try:
        report = run(a, folder, processes)
    finally:
        processes.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(report, f, indent=1)


def run(a, folder, processes):
    slide = os.path.abspath(a.slide)
    base = os.path.basename(slide)
    serve = [a.microtome, "serve", slide, "--listen", "127.0.0.1:%d" % MICROTOME]
    server = processes.start("microtome", serve, MICROTOME, "/healthz")

    def restart(side):
        """An empty cache for us; the peer keeps none between requests."""
        nonlocal server
        if side == "microtome":
            server.terminate()
            server.wait()
            server = processes.start("microtome", serve, MICROTOME, "/healthz")

    info = json.loads(get(MICROTOME, "/slides/" + base)[0])
    level = info["levels"][0]
    width, height, tile = level["width"], level["height"], level["tile_width"]
    top = (max(width, height) - 1).bit_length()
    rng = random.Random(7)
    spots = grid(width, height, tile, 200000, rng)
    native = list(dict.fromkeys(spots))
    few = native[:4000]
    url = "/deepzoom/" + base + "_files/%d/%d_%d.jpg"

    log("copying %d stored tiles into files for nginx" % len(native))
    os.mkdir(os.path.join(folder, "tiles"))
    os.chmod(folder, 0o755)
    for col, row in native:
        body, head = get(MICROTOME, url % (top, col, row))
        if not head["Microtome-Tile"].startswith("stored"):
            raise SystemExit("tile %d,%d is not served as stored: %s" % (col, row, head["Microtome-Tile"]))
        with open(os.path.join(folder, "tiles", "%d_%d.jpg" % (col, row)), "wb") as f:
            f.write(body)
    processes.start("nginx", ["nginx", "-c", nginx_config(folder, a.nginx_open_files), "-p", folder, "-e", folder + "/nginx.log"], NGINX, "/%d_%d.jpg" % native[0])

    ours_all = write_lines(folder, "ours_all", [url % (top, c, r) for c, r in native])
    ours_few = write_lines(folder, "ours_few", [url % (top, c, r) for c, r in few])
    nginx_all = write_lines(folder, "nginx_all", ["/%d_%d.jpg" % s for s in native])
    nginx_few = write_lines(folder, "nginx_few", ["/%d_%d.jpg" % s for s in few])
    report = {"slide": base, "machine": os.uname().machine, "cores": os.cpu_count(), "trials": a.trials, "seconds": a.seconds, "rows": []}

    def row(name, against, ours, theirs):
        r = {"what": name, "against": against, "ours": median(ours), "theirs": median(theirs), "ratio": ratio(ours, theirs),
             "p99_ms": median(ours, "p99_ms"), "errors": sum(x["errors"] for x in ours)}
        report["rows"].append(r)
        print("%-34s ours %8.0f /s  %-18s %8.0f /s  ratio %6.2f  our p99 %5.2f ms  errors %d" % (
            name, r["ours"], against, r["theirs"], r["ratio"], r["p99_ms"], r["errors"]), flush=True)

    wanted = a.only or ["nginx", "openslide", "iipsrv"]
    if "nginx" in wanted:
        res = turns("stored, whole level", {"microtome": (MICROTOME, ours_all), "nginx": (NGINX, nginx_all)}, a.trials, a.seconds)
        row("stored tiles, the whole level", "nginx, files", res["microtome"], res["nginx"])
        wrk(MICROTOME, ours_few, a.seconds, 99)
        res = turns("stored, from memory", {"microtome": (MICROTOME, ours_few), "nginx": (NGINX, nginx_few)}, a.trials, a.seconds)
        row("stored tiles, 4,000 of them warm", "nginx, files", res["microtome"], res["nginx"])

    if "openslide" not in wanted:
        pass
    elif os.path.exists(a.python):
        between = top - 1
        half = list(dict.fromkeys(grid((width + 1) // 2, (height + 1) // 2, tile, 100000, rng)))
        peer_all = write_lines(folder, "os_all", ["/t/%d/%d_%d.jpeg" % (top, c, r) for c, r in native])
        peer_half = write_lines(folder, "os_half", ["/t/%d/%d_%d.jpeg" % (between, c, r) for c, r in half])
        ours_half = write_lines(folder, "ours_half", [url % (between, c, r) for c, r in half])
        env = dict(os.environ, SLIDE=slide, TILE=str(tile))
        processes.start("gunicorn", [a.python, "-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:%d" % OPENSLIDE, "zoom_app:app"],
                        OPENSLIDE, "/t/0/0_0.jpeg", cwd=os.path.join(HERE, ".."), env=env)
        res = turns("stored, whole level", {"microtome": (MICROTOME, ours_all), "openslide": (OPENSLIDE, peer_all)}, a.trials, a.seconds)
        row("stored tiles, the whole level", "openslide-python", res["microtome"], res["openslide"])
        res = turns("between levels, cold", {"microtome": (MICROTOME, ours_half), "openslide": (OPENSLIDE, peer_half)},
                    a.trials, a.cold_seconds, before=restart, once=True)
        row("between stored levels, cold", "openslide-python", res["microtome"], res["openslide"])
        report["mean_difference"] = mean_difference(a.python, between, half[:200], url)
        print("mean difference to openslide-python between levels: %.2f" % report["mean_difference"])
    else:
        log("no %s: openslide-python left out" % a.python)

    iipsrv = shutil.which("iipsrv.fcgi") or "/usr/lib/iipimage-server/iipsrv.fcgi"
    if "iipsrv" not in wanted:
        pass
    elif a.tiff and os.path.exists(iipsrv):
        iip_rows(a, folder, processes, iipsrv, row, ours_all)
    else:
        log("no --tiff or no iipsrv: iipsrv left out")
    return report


def iip_rows(a, folder, processes, iipsrv, row, ours_all):
    for port in (9311, 9312):
        p = subprocess.Popen([iipsrv, "--bind", "127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=dict(os.environ, LOGFILE=folder + "/iip.log", VERBOSITY="0", MAX_IMAGE_CACHE_SIZE="10"))
        processes.all.append(p)
    time.sleep(1)
    twin = os.path.abspath(a.tiff)
    body, _ = get(IIPSRV, "/iip?FIF=%s&obj=Max-size&obj=Resolution-number" % twin)
    values = dict(l.split(":", 1) for l in body.decode().split("\r\n") if ":" in l)
    width, height = map(int, values["Max-size"].split())
    top = int(values["Resolution-number"]) - 1
    cols = -(-width // 256)
    spots = grid(width, height, 256, 100000, random.Random(8))
    paths = write_lines(folder, "iip", ["/iip?FIF=%s&jtl=%d,%d" % (twin, top, r * cols + c) for c, r in spots])
    res = turns("stored, whole level", {"microtome": (MICROTOME, ours_all), "iipsrv": (IIPSRV, paths)}, a.trials, a.seconds)
    row("stored tiles, the whole level", "iipsrv", res["microtome"], res["iipsrv"])


def mean_difference(python, level, spots, url):
    """Mean absolute difference of decoded tiles, by the peers' own Python."""
    script = (
        "import io,sys,json,urllib.request,numpy as np\nfrom PIL import Image\nd=[]\n"
        "g=lambda u:np.asarray(Image.open(io.BytesIO(urllib.request.urlopen(u).read())).convert('RGB')).astype(int)\n"
        "for a,b in json.load(sys.stdin):\n x,y=g(a),g(b)\n assert x.shape==y.shape,(x.shape,y.shape)\n d.append(np.abs(x-y).mean())\n"
        "print(np.mean(d))\n")
    pairs = [("http://127.0.0.1:%d%s" % (MICROTOME, url % (level, c, r)), "http://127.0.0.1:%d/t/%d/%d_%d.jpeg" % (OPENSLIDE, level, c, r))
             for c, r in spots]
    out = subprocess.run([python, "-c", script], input=json.dumps(pairs), capture_output=True, text=True, check=True).stdout
    return float(out)


if __name__ == "__main__":
    main()
