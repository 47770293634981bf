// The view in the address: #x=&y=&d=&r= with the centre in level-0 pixels, the
// level-0 pixels per CSS pixel, and the rotation in degrees; c, z, t name a plane.

const keys = ["x", "y", "d", "r", "c", "z", "t"];

export function parse(hash) {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const view = {};
  for (const k of keys) {
    const text = q.get(k);
    if (text === null || text.trim() === "") continue;
    const n = Number(text);
    if (Number.isFinite(n)) view[k] = n;
  }
  if (!(view.d > 0)) delete view.d;
  for (const k of ["c", "z", "t"]) {
    if (view[k] !== undefined && !(Number.isInteger(view[k]) && view[k] >= 0)) delete view[k];
  }
  return view;
}

export function print(view) {
  const q = [`x=${round(view.x, 1)}`, `y=${round(view.y, 1)}`, `d=${Number(view.d.toPrecision(6))}`];
  const r = round(((view.r % 360) + 360) % 360, 1);
  if (r) q.push(`r=${r}`);
  for (const k of ["c", "z", "t"]) if (view[k]) q.push(`${k}=${view[k]}`);
  return `#${q.join("&")}`;
}

function round(n, digits) {
  return Number(n.toFixed(digits));
}
