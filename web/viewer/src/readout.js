// The scale bar, the magnification and the pointer's place.
import OpenSeadragon from "openseadragon";
import { bar, magnificationAt, steps, zoomFor } from "./scale.js";
import { length, magnification, short } from "./format.js";
import { make } from "./card.js";

export function readout(viewer, lens, slide, $) {
  const power = slide.objective_power;
  const buttons = powerButtons($("powers"), lens, power);
  const show = () => {
    const zoom = lens.zoom();
    scaleBar($, slide, lens, zoom);
    $("mag").textContent = power ? magnification(magnificationAt(zoom, power)) : `${short(zoom * 100)} %`;
    for (const [button, z] of buttons) button.setAttribute("aria-pressed", Math.abs(zoom / z - 1) < 0.005);
  };
  viewer.addHandler("update-viewport", show);
  viewer.addHandler("resize", show);
  new OpenSeadragon.MouseTracker({
    element: viewer.container,
    moveHandler: (e) => {
      const p = viewer.world.getItemAt(0)?.viewerElementToImageCoordinates(e.position);
      if (!p) return;
      const inside = p.x >= 0 && p.y >= 0 && p.x < slide.width && p.y < slide.height;
      $("cursor").textContent = inside ? `${Math.floor(p.x)}, ${Math.floor(p.y)}` : "";
    },
    leaveHandler: () => { $("cursor").textContent = ""; },
  });
  show();
}

// Without an objective's power the buttons are shares of full resolution.
function powerButtons(box, lens, power) {
  const offered = power
    ? steps(power).map((m) => [magnification(m), zoomFor(m, power)])
    : [["25 %", 0.25], ["50 %", 0.5], ["100 %", 1]];
  return offered.map(([text, zoom]) => {
    const button = make("button", "", text);
    button.addEventListener("click", () => lens.zoomTo(zoom));
    box.append(button);
    return [button, zoom];
  });
}

function scaleBar($, slide, lens, zoom) {
  $("scalebar").hidden = false;
  $("scaleline").classList.toggle("none", !slide.mpp);
  if (!slide.mpp) {
    $("scaletext").textContent = "Scale unknown";
    return;
  }
  const b = bar((slide.mpp.x / zoom) * lens.ratio(), 160);
  if (!b) return;
  $("scaletext").textContent = length(b.um);
  $("scaleline").style.width = `${b.pixels}px`;
}
