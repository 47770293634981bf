// What is known of the slide. Everything goes in as text: names and properties
// come from files of others.
import { make } from "./card.js";
import { bytes, whole } from "./format.js";

export function infoPanel(panel, slide, jump, shown) {
  panel.replaceChildren(make("h2", "", "Slide"), pairs(facts(slide)), make("h2", "", "Go to"), jumpForm(slide, jump), saveLink(slide, shown));
  for (const w of slide.warnings ?? []) panel.append(make("p", "", w));
  const levels = slide.levels.map((l, i) => [`${i}: 1/${Number(l.downsample.toFixed(2))}`, `${whole(l.width)} × ${whole(l.height)}, ${l.codec}`]);
  panel.append(make("h2", "", "Levels"), pairs(levels));
  associated(panel, slide);
  const all = Object.entries(slide.properties).sort(([a], [b]) => (a < b ? -1 : 1));
  if (all.length || slide.properties_hidden) panel.append(make("h2", "", "Properties"), pairs(all, "long"));
  if (slide.properties_hidden) panel.append(make("p", "", `${slide.properties_hidden} more are held back by the server.`));
}

function facts(s) {
  const out = [["Name", s.name], ["Format", s.format], ["Size", `${whole(s.width)} × ${whole(s.height)} px`]];
  if (s.mpp) {
    const mm = (px, mpp) => ((Number(px) * mpp) / 1000).toFixed(2);
    out.push(["Area", `${mm(s.width, s.mpp.x)} × ${mm(s.height, s.mpp.y)} mm`]);
  }
  out.push(["Resolution", s.mpp ? `${Number(s.mpp.x.toPrecision(4))} µm/px` : "unknown"]);
  out.push(["Objective", s.objective_power ? `${s.objective_power}×` : "unknown"]);
  out.push(["File", bytes(s.bytes)], ["Changed", s.modified.slice(0, 10)]);
  return out;
}

function pairs(list, className) {
  const dl = make("dl", className);
  for (const [k, v] of list) dl.append(make("dt", "", k), make("dd", "", v));
  return dl;
}

function jumpForm(slide, jump) {
  const form = make("form");
  const field = (name, max) => {
    const input = make("input");
    Object.assign(input, { type: "number", name, min: 0, max: Number(max), step: "any", placeholder: name, required: true });
    input.setAttribute("aria-label", `${name} in pixels of the slide`);
    return input;
  };
  const x = field("x", slide.width), y = field("y", slide.height);
  form.append(x, y, make("button", "", "Go"));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    jump(Number(x.value), Number(y.value));
  });
  return form;
}

// saveLink is to the server's own picture of what is shown; it is made when it
// is about to be followed.
function saveLink(slide, shown) {
  const a = make("a", "save", "Save this view (PNG)");
  const fill = () => { a.href = shown(); };
  for (const event of ["pointerdown", "focus", "click"]) a.addEventListener(event, fill);
  a.download = `${slide.name}.png`;
  fill();
  return a;
}

function associated(panel, slide) {
  if (!slide.associated.length) return;
  panel.append(make("h2", "", "Other images"));
  for (const a of slide.associated) {
    panel.append(make("p", "", `${a.name}, ${a.width} × ${a.height}${a.closed ? " (closed by the server)" : ""}`));
    if (a.closed) continue;
    const img = make("img");
    img.alt = a.name;
    img.loading = "lazy";
    img.src = a.url;
    panel.append(img);
  }
}
