// Lengths on the slide: press and drag, or click twice.
import OpenSeadragon from "openseadragon";
import { distance } from "./scale.js";
import { length, whole } from "./format.js";

const ns = "http://www.w3.org/2000/svg";

export function measureTool(viewer, button, ink, slide) {
  let on = false, lines = [], open = null;
  const at = (position) => {
    const p = image().viewerElementToImageCoordinates(position);
    return { x: p.x, y: p.y };
  };
  const image = () => viewer.world.getItemAt(0);
  const show = () => draw(ink, lines, image(), slide.mpp);

  function toggle() {
    on = !on;
    button.setAttribute("aria-pressed", on);
    viewer.container.classList.toggle("measuring", on);
    if (!on) {
      lines = [];
      open = null;
      show();
    }
  }

  viewer.addHandler("canvas-press", (e) => {
    if (!on || open?.clicked) return;
    open = { a: at(e.position), b: at(e.position) };
  });
  viewer.addHandler("canvas-drag", (e) => {
    if (!on || !open) return;
    e.preventDefaultAction = true;
    open.b = at(e.position);
    keep(false);
  });
  viewer.addHandler("canvas-drag-end", (e) => {
    if (!on || !open) return;
    e.preventDefaultAction = true;
    keep(true);
  });
  viewer.addHandler("canvas-click", (e) => {
    if (!on) return;
    e.preventDefaultAction = true;
    if (!e.quick || !open) return;
    if (open.clicked) {
      open.b = at(e.position);
      keep(true);
    } else {
      open.clicked = true;
      keep(false);
    }
  });
  viewer.addHandler("canvas-double-click", (e) => { if (on) e.preventDefaultAction = true; });
  new OpenSeadragon.MouseTracker({
    element: viewer.container,
    moveHandler: (e) => {
      if (!on || !open?.clicked) return;
      open.b = at(e.position);
      keep(false);
    },
  });

  function keep(done) {
    if (!lines.includes(open)) lines.push(open);
    if (done) open = null;
    show();
  }

  button.addEventListener("click", toggle);
  for (const event of ["update-viewport", "resize", "rotate"]) viewer.addHandler(event, () => lines.length && show());
  return { toggle, active: () => on };
}

/** label is a length as it stands beside its line. */
export function label(line, mpp) {
  const d = distance(line.a, line.b, mpp);
  return d.um === undefined ? `${whole(Math.round(d.px))} px` : length(d.um);
}

function draw(ink, lines, image, mpp) {
  ink.replaceChildren(...lines.flatMap((line) => {
    const [a, b] = [line.a, line.b].map((p) => image.imageToViewerElementCoordinates(new OpenSeadragon.Point(p.x, p.y)));
    const ends = { x1: a.x, y1: a.y, x2: b.x, y2: b.y };
    const text = shape("text", { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - 10 });
    text.textContent = label(line, mpp);
    return [shape("line", { ...ends, class: "edge" }), shape("line", ends),
      shape("circle", { cx: a.x, cy: a.y, r: 4 }), shape("circle", { cx: b.x, cy: b.y, r: 4 }), text];
  }));
}

function shape(tag, attributes) {
  const e = document.createElementNS(ns, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}
