"""The reference in a process of its own: OpenSlide 4.0.1 from PyPI (openslide-bin).

Reads one JSON request a line on stdin; answers with one JSON line and, where it
says so, that many bytes. Started by `microtome verify`; speaks to nobody else.
"""
import json
import os
import shutil
import struct
import sys
import tempfile

WANTED = "4.0.1"
PIECE = 4096  # OpenSlide paints larger regions in pieces of this size

out = sys.stdout.buffer


def answer(head, body=b""):
    head["bytes"] = len(body)
    out.write(json.dumps(head).encode() + b"\n")
    out.write(body)
    out.flush()


def straight_rgba(image):
    return image.convert("RGBA").tobytes()


def directories(f):
    """Offsets of the main chain's directories, each with the place of its own
    next pointer and its width and height. Independent of the Go walker."""
    f.seek(0)
    order = "<" if f.read(2) == b"II" else ">"
    big = struct.unpack(order + "H", f.read(2))[0] == 43
    if big:
        f.seek(8)
    word, size = (order + "Q", 8) if big else (order + "I", 4)
    offset = struct.unpack(word, f.read(size))[0]
    seen = set()
    while offset and offset not in seen:
        seen.add(offset)
        f.seek(offset)
        n = struct.unpack(order + ("Q" if big else "H"), f.read(8 if big else 2))[0]
        tags = {}
        for _ in range(n):
            entry = f.read(20 if big else 12)
            tag, kind = struct.unpack(order + "HH", entry[:4])
            value = entry[12:] if big else entry[8:]
            code = {3: "H", 4: "I", 16: "Q"}.get(kind)
            if code:
                tags[tag] = struct.unpack(order + code, value[: struct.calcsize(code)])[0]
        place = f.tell()
        after = struct.unpack(word, f.read(size))[0]
        yield offset, place, tags, word
        offset = after


class Reference:
    def __init__(self, path):
        import openslide

        self.openslide = openslide
        self.path = path
        self.slide = openslide.OpenSlide(path)
        self.alone = {}
        self.scratch = None

    def close(self):
        for slide in self.alone.values():
            slide.close()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def level_alone(self, level):
        """The level as level 0 of a copy whose first directory it is.

        OpenSlide cuts a large region into pieces whose origins it rounds to
        level-0 pixels; where the downsample is no integer it then interpolates
        between stored pixels. As a slide's only level it is read exactly."""
        if level in self.alone:
            return self.alone[level]
        if self.scratch is None:
            self.scratch = tempfile.mkdtemp(prefix="microtome-verify-")
        size = self.slide.level_dimensions[level]
        copy = os.path.join(self.scratch, "level%d%s" % (level, os.path.splitext(self.path)[1]))
        for old in os.listdir(self.scratch):
            os.unlink(os.path.join(self.scratch, old))
        shutil.copyfile(self.path, copy)
        with open(copy, "r+b") as f:
            for offset, place, tags, word in list(directories(f)):
                if (tags.get(256), tags.get(257)) == tuple(size) and 322 in tags:
                    f.seek(8 if word.endswith("Q") else 4)
                    f.write(struct.pack(word, offset))
                    f.seek(place)
                    f.write(struct.pack(word, 0))
                    break
            else:
                raise ValueError("no directory of level %d's size in the main chain" % level)
        slide = self.openslide.OpenSlide(copy)
        if slide.level_dimensions[0] != tuple(size):
            raise ValueError("the copy shows %r, not %r" % (slide.level_dimensions[0], size))
        self.alone[level] = slide
        return slide

    def hello(self, _):
        s = self.slide
        return {
            "version": self.openslide.__library_version__,
            "levels": [list(d) for d in s.level_dimensions],
            "downsamples": list(s.level_downsamples),
            "properties": dict(s.properties),
            "associated": sorted(s.associated_images),
        }, b""

    def region(self, q):
        image = self.slide.read_region((q["x"], q["y"]), q["level"], (q["width"], q["height"]))
        return {}, straight_rgba(image)

    def rows(self, q):
        level, w, h = q["level"], q["width"], q["height"]
        full_w, full_h = self.slide.level_dimensions[level]
        if full_w <= PIECE and full_h <= PIECE:
            # read_region starts at (0, 0) only, where the position is exact.
            image = self.slide.read_region((0, 0), level, (w, q["y"] + h)).crop((0, q["y"], w, q["y"] + h))
        else:
            image = self.level_alone(level).read_region((0, q["y"]), 0, (w, h))
        return {}, straight_rgba(image)

    def associated(self, q):
        image = self.slide.associated_images[q["name"]]
        return {"width": image.width, "height": image.height}, straight_rgba(image)


def main():
    path = sys.argv[1]
    try:
        reference = Reference(path)
    except Exception as e:  # the reason goes to the caller, whatever it is
        answer({"error": "%s: %s" % (type(e).__name__, e)})
        return
    for line in sys.stdin:
        q = json.loads(line)
        try:
            head, body = getattr(reference, q["op"])(q)
        except Exception as e:
            head, body = {"error": "%s: %s" % (type(e).__name__, e)}, b""
        answer(head, body)
    reference.close()


main()
