// Numbers as people read them.

const units = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(n) {
  n = Number(n);
  let u = 0;
  while (n >= 999.5 && u < units.length - 1) {
    n /= 1000;
    u++;
  }
  return `${u && n < 9.95 ? n.toFixed(1) : Math.round(n)} ${units[u]}`;
}

/** length is a length given in µm, in the unit that fits. */
export function length(um) {
  if (um >= 1000) return `${short(um / 1000)} mm`;
  if (um > 0 && um < 1) return `${short(um * 1000)} nm`;
  return `${short(um)} µm`;
}

/** short has three significant digits, and no more than are there. */
export function short(n) {
  if (n >= 1000) return String(Math.round(n));
  return String(Number(n.toPrecision(3)));
}

export function magnification(m) {
  return `${m >= 10 ? Number(m.toFixed(1)) : Number(m.toPrecision(2))}×`;
}

export function whole(n) {
  return Number(n).toLocaleString("en");
}
