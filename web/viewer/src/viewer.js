// The page of one slide.
import * as api from "./api.js";
import * as urlstate from "./urlstate.js";
import { adjustPanel } from "./adjust.js";
import { infoPanel } from "./panel.js";
import { lensOf } from "./lens.js";
import { measureTool } from "./measure.js";
import { noticeLine } from "./notice.js";
import { openSlide } from "./osd.js";
import { planeChooser } from "./planes.js";
import { regionOf } from "./save.js";
import { readout } from "./readout.js";
import { tellFailures } from "./retry.js";
import { tileSource } from "./tilesource.js";
import { watchBuilding } from "./building.js";
import { controls } from "./controls.js";

const $ = (id) => document.getElementById(id);

// slideID is what stands behind view/ in the address, below the page's base.
function slideID() {
  const base = new URL("view/", document.baseURI).pathname;
  return decodeURIComponent(location.pathname.slice(base.length));
}

async function start() {
  const id = slideID();
  const name = id.slice(id.lastIndexOf("/") + 1);
  document.title = `${name} · Microtome`;
  $("name").textContent = name;
  $("name").title = id;
  let slide;
  try {
    slide = await api.slide(id);
  } catch (err) {
    return fail(err);
  }
  show(slide);
}

function fail(err) {
  const title = document.createElement("h2"), reason = document.createElement("p"), back = document.createElement("a");
  title.textContent = err.status === 404 ? "There is no such slide" : "This slide cannot be shown";
  reason.textContent = err.message;
  back.textContent = "All slides";
  back.href = "./";
  $("failure").replaceChildren(title, reason, back);
  $("failure").hidden = false;
  document.body.dataset.failed = "true";
}

function show(slide) {
  const wanted = urlstate.parse(location.hash);
  const plane = { c: wanted.c ?? 0, z: wanted.z ?? 0, t: wanted.t ?? 0 };
  const notice = noticeLine($("notice"));
  planeChooser($("powers"), slide, plane, () => replan());
  const viewer = openSlide($("slide"), tileSource(slide, plane));
  const lens = lensOf(viewer);
  tellFailures(viewer, notice);
  watchBuilding(viewer, slide, notice);

  viewer.addOnceHandler("open", () => {
    restore(viewer, lens, wanted);
    readout(viewer, lens, slide, $);
    const measure = measureTool(viewer, $("measure"), $("ink"), slide);
    infoPanel($("info"), slide, (x, y) => lens.goTo(x, y), () => regionOf(viewer, lens, slide, plane));
    adjustPanel($("adjust"), viewer.drawer.canvas, $("gamma"));
    controls(viewer, lens, measure, $);
    remember(viewer, lens, plane);
    viewer.canvas.focus({ preventScroll: true }); // so that the keys work at once
    document.body.dataset.ready = "true";
  });
  viewer.addHandler("open-failed", (e) => fail({ message: e.message }));
  addEventListener("hashchange", () => restore(viewer, lens, urlstate.parse(location.hash)));

  function replan() {
    const old = viewer.world.getItemAt(0);
    viewer.addTiledImage({
      tileSource: tileSource(slide, plane), index: 0, replace: true,
      success: () => viewer.raiseEvent("replanned", {}), error: (e) => notice("plane", e.message),
    });
    if (!old) notice("plane", "");
  }
}

function restore(viewer, lens, view) {
  if (view.r !== undefined) viewer.viewport.setRotation(view.r, true);
  if (view.d) lens.zoomTo(lens.ratio() / view.d, true);
  if (view.x !== undefined && view.y !== undefined) lens.goTo(view.x, view.y, true);
  lens.settle();
}

// remember keeps the view in the address, without a step of its own in the
// browser's history.
function remember(viewer, lens, plane) {
  let timer = 0;
  const write = () => {
    const c = lens.centre();
    const view = { x: c.x, y: c.y, d: lens.ratio() / lens.zoom(), r: viewer.viewport.getRotation(), ...plane };
    history.replaceState(null, "", location.pathname + location.search + urlstate.print(view));
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(write, 200);
  };
  viewer.addHandler("animation-finish", () => {
    lens.settle();
    later();
  });
  for (const event of ["rotate", "zoom", "pan", "replanned"]) viewer.addHandler(event, later);
}

start();
