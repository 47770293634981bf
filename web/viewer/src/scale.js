// Arithmetic of scales. zoom is device pixels per level-0 pixel everywhere.

/** bar is the longest round length (1, 2 or 5 times a power of ten, in µm) that
 * is at most maxPixels wide, at umPerPixel µm a pixel. */
export function bar(umPerPixel, maxPixels) {
  const most = umPerPixel * maxPixels;
  if (!(most > 0) || !Number.isFinite(most)) return null;
  const ten = 10 ** Math.floor(Math.log10(most));
  const step = [5, 2, 1].find((s) => s * ten <= most * (1 + 1e-9)) ?? 1;
  return { um: step * ten, pixels: (step * ten) / umPerPixel };
}

/** magnificationAt: the objective's power is shown where one device pixel is
 * one pixel of the slide. */
export function magnificationAt(zoom, power) {
  return zoom * power;
}

export function zoomFor(magnification, power) {
  return magnification / power;
}

/** steps are the magnifications offered: those of microscopes up to the slide's
 * own power, which is always one of them. */
export function steps(power) {
  const usual = [1, 2, 5, 10, 20, 40, 60, 100].filter((m) => m < power * 0.99);
  return [...usual, power].slice(-6);
}

/** distance between two points in level-0 pixels: in µm with mpp, else in px. */
export function distance(a, b, mpp) {
  const dx = b.x - a.x, dy = b.y - a.y;
  if (!mpp) return { px: Math.hypot(dx, dy) };
  return { um: Math.hypot(dx * mpp.x, dy * mpp.y), px: Math.hypot(dx, dy) };
}

/** snap is the shift (in screen pixels) that puts the origin of the drawn level
 * on a whole device pixel, so that nothing is interpolated needlessly. */
export function snap(offset) {
  return Math.round(offset) - offset;
}

/** delay before try n (from 0) of a failed tile, in ms. */
export function delay(n, random = Math.random()) {
  return Math.min(500 * 2 ** n, 30000) * (0.75 + random / 2);
}
