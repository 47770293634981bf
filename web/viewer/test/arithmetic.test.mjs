import test from "node:test";
import assert from "node:assert/strict";
import { bar, delay, distance, magnificationAt, snap, steps, zoomFor } from "../src/scale.js";
import { bytes, length, magnification, short } from "../src/format.js";
import { parse, print } from "../src/urlstate.js";
import { columns, duration, figure, title, word } from "../src/figures.js";
import { tileSource } from "../src/tilesource.js";

test("the scale bar is round and fits", () => {
  assert.deepEqual(bar(0.5, 160), { um: 50, pixels: 100 });
  assert.deepEqual(bar(1, 100), { um: 100, pixels: 100 });
  for (let um = 0.01; um < 500; um *= 1.37) {
    const b = bar(um, 160);
    assert.ok(b.pixels <= 160.001 && b.pixels > 60, `${um}: ${b.pixels}`);
    assert.match(String(b.um.toPrecision(1)), /^[0.]*[125]0*$|^[125]e/);
  }
  for (const none of [0, -1, NaN, Infinity]) assert.equal(bar(none, 160), null);
});

test("zoom and magnification are inverse", () => {
  assert.equal(magnificationAt(1, 20), 20);
  assert.equal(magnificationAt(0.25, 40), 10);
  for (const m of [1, 5, 40]) assert.equal(magnificationAt(zoomFor(m, 40), 40), m);
  assert.deepEqual(steps(20), [1, 2, 5, 10, 20]);
  assert.deepEqual(steps(40), [1, 2, 5, 10, 20, 40]);
  assert.deepEqual(steps(1.25), [1, 1.25]);
});

test("distances heed both axes' scales", () => {
  const a = { x: 0, y: 0 }, b = { x: 300, y: 400 };
  assert.deepEqual(distance(a, b, null), { px: 500 });
  assert.equal(distance(a, b, { x: 0.5, y: 0.5 }).um, 250);
  assert.equal(distance(a, { x: 100, y: 0 }, { x: 0.25, y: 1 }).um, 25);
  assert.equal(distance(a, { x: 0, y: 100 }, { x: 0.25, y: 1 }).um, 100);
});

test("numbers as people read them", () => {
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes("177552579"), "178 MB");
  assert.equal(bytes(1500), "1.5 kB");
  assert.equal(bytes(999600), "1.0 MB");
  assert.equal(length(250), "250 µm");
  assert.equal(length(1000), "1 mm");
  assert.equal(length(0.5), "500 nm");
  assert.equal(short(1234.5), "1235");
  assert.equal(magnification(20), "20×");
  assert.equal(magnification(1.25), "1.3×");
});

test("the view survives the address", () => {
  const view = { x: 3001.3, y: 2207.8, d: 2, r: 90, c: 1, z: 0, t: 2 };
  assert.equal(print(view), "#x=3001.3&y=2207.8&d=2&r=90&c=1&t=2");
  assert.deepEqual(parse(print(view)), { x: 3001.3, y: 2207.8, d: 2, r: 90, c: 1, t: 2 });
  assert.match(print({ x: 1, y: 1, d: 1, r: -90 }), /r=270/);
  assert.deepEqual(parse("#d=-1&x=&y=abc&c=1.5&t=-2"), {});
  assert.deepEqual(parse(""), {});
});

test("retries back off, with a bound", () => {
  assert.equal(delay(0, 0.5), 500);
  assert.equal(delay(3, 0.5), 4000);
  assert.equal(delay(40, 0.5), 30000);
  assert.ok(delay(2, 0) < delay(2, 1));
});

test("snapping moves by at most half a pixel", () => {
  for (const x of [0, 0.2, 0.5, -7.9, 1234.56]) {
    assert.ok(Math.abs(snap(x)) <= 0.5);
    assert.ok(Number.isInteger(Math.round((x + snap(x)) * 1e6) / 1e6));
  }
});

test("tiles' addresses carry the generation and the plane", () => {
  const slide = { width: 1000, height: "700", deepzoom: { url: "/base/deepzoom/a%2Fb.dzi.svs.dzi?v=G1", tile: 240, overlap: 0, max_level: 10 } };
  const s = tileSource(slide, { c: 0, z: 2, t: 0 });
  assert.equal(s.getTileUrl(10, 3, 1), "/base/deepzoom/a%2Fb.dzi.svs_files/10/3_1.jpg?v=G1&z=2");
  assert.equal(s.height, 700);
  assert.equal(s.maxLevel, 10);
});

test("figures are said by their keys, known or not", () => {
  const cases = [
    ["bytes", 0, "0 B"], ["sent_bytes", 1234567, "1.2 MB"], ["p99_ms", 3.456, "3.46 ms"], ["p50_ms", null, "–"], ["hit_share", 0.875, "87.5 %"],
    ["uptime_seconds", 59, "59 s"], ["exact", true, "yes"], ["scanning", false, "no"], ["version", "", "–"], ["version", "1.2", "1.2"], ["hits", 1234567, "1,234,567"],
  ];
  for (const [key, value, want] of cases) assert.equal(figure(key, value), want, key);
  for (const [s, want] of [[0, "0 s"], [61, "1 min 1 s"], [3600, "1 h 0 min"], [90061, "1 d 1 h"]]) assert.equal(duration(s), want);
  assert.equal(word("decodes", "whole"), "Tiles decoded whole");
  assert.equal(word("answers", "p99_ms"), "99 %");
  assert.equal(word("other", "new_kind_bytes"), "New kind");
  assert.equal(title("new_section"), "New section");
  assert.equal(figure("started", "2026-12-01T12:46:45Z"), "2026-12-01 12:46:45 UTC");
  assert.deepEqual(columns("other", { a: { x: 1 }, b: { x: 2 } }), ["a", "b"]);
  assert.deepEqual(columns("answers", { empty: {}, newer: {}, stored: {} }), ["stored", "empty", "newer"]);
  for (const list of [{}, { a: 1 }, { a: null }, { a: { x: 1 }, b: 2 }]) assert.equal(columns("caches", list), null);
});
