// The choice of channel, focus and time where a slide has more than one.
import { make } from "./card.js";

const words = { c: "Channel", z: "Focus", t: "Time" };

export function planeChooser(box, slide, plane, changed) {
  for (const key of ["c", "z", "t"]) {
    const n = slide.planes[key];
    if (n < 2) continue;
    const select = make("select");
    select.setAttribute("aria-label", words[key]);
    for (let i = 0; i < n; i++) {
      const name = key === "c" ? slide.channels?.[i]?.name : "";
      const option = make("option", "", name || `${words[key]} ${i + 1}`);
      option.value = i;
      select.append(option);
    }
    plane[key] = Math.min(plane[key] ?? 0, n - 1);
    select.value = plane[key];
    select.addEventListener("change", () => {
      plane[key] = Number(select.value);
      changed();
    });
    box.prepend(select);
  }
}
