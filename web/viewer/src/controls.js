// Buttons and keys of the viewer page.

export function controls(viewer, lens, measure, $) {
  const turn = (by) => viewer.viewport.setRotation(viewer.viewport.getRotation() + by);
  const full = () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.();
  };
  const panels = [["info", "infoOpen"], ["adjust", "adjustOpen"]];
  const flip = (name) => {
    for (const [panel, button] of panels) {
      const open = panel === name && $(panel).hidden;
      $(panel).hidden = !open;
      $(button).setAttribute("aria-expanded", open);
    }
  };
  const home = () => {
    viewer.viewport.setRotation(0, true); // before the place: home depends on it
    viewer.viewport.goHome();
  };
  $("home").addEventListener("click", home);
  $("left").addEventListener("click", () => turn(-90));
  $("right").addEventListener("click", () => turn(90));
  $("full").addEventListener("click", full);
  for (const [panel, button] of panels) $(button).addEventListener("click", () => flip(panel));

  // OpenSeadragon's own keys work while the slide has the focus; its r and f
  // (flip) are taken here.
  viewer.addHandler("canvas-key", (e) => {
    if (["r", "R", "f", "0"].includes(e.originalEvent.key)) e.preventDefaultAction = true;
  });
  const keys = { m: measure.toggle, r: () => turn(90), R: () => turn(-90), f: full, i: () => flip("info"), 0: home };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, select")) return;
    if (e.key === "Escape" && measure.active()) measure.toggle();
    keys[e.key]?.();
  });
}
