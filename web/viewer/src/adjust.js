// Brightness, contrast and gamma of what is shown; the pixels stay as they are.
import { make } from "./card.js";

const sliders = [
  { key: "brightness", label: "Brightness", min: 0.3, max: 2 },
  { key: "contrast", label: "Contrast", min: 0.3, max: 2.5 },
  { key: "gamma", label: "Gamma", min: 0.3, max: 3 },
];

export function adjustPanel(panel, canvas, filter) {
  const now = { brightness: 1, contrast: 1, gamma: 1 };
  const rows = sliders.map((s) => row(s, now, apply));
  const reset = make("button", "", "Reset");
  reset.addEventListener("click", () => {
    for (const r of rows) r.set(1);
    apply();
  });
  panel.append(make("h2", "", "Adjust"), ...rows.map((r) => r.label), reset);

  function apply() {
    for (const f of filter.querySelectorAll("[type=gamma]")) f.setAttribute("exponent", 1 / now.gamma);
    const list = [];
    if (now.brightness !== 1) list.push(`brightness(${now.brightness})`);
    if (now.contrast !== 1) list.push(`contrast(${now.contrast})`);
    if (now.gamma !== 1) list.push("url(#gamma)");
    canvas.style.filter = list.join(" ");
  }
}

function row({ key, label, min, max }, now, apply) {
  const box = make("label", "", label), input = make("input"), out = make("output", "", "1.00");
  Object.assign(input, { type: "range", min, max, step: 0.01, value: 1, name: key });
  const set = (v) => {
    now[key] = v;
    input.value = v;
    out.textContent = v.toFixed(2);
  };
  input.addEventListener("input", () => {
    set(Number(input.value));
    apply();
  });
  box.append(input, out);
  return { label: box, set };
}
