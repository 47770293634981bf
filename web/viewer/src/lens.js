// The view in the slide's own terms: level-0 pixels, and zoom as device pixels
// per level-0 pixel.
import OpenSeadragon from "openseadragon";
import { snap } from "./scale.js";

export function lensOf(viewer) {
  const vp = viewer.viewport;
  const image = () => viewer.world.getItemAt(0);
  const ratio = () => window.devicePixelRatio || 1;

  const zoom = () => image().viewportToImageZoom(vp.getZoom(true)) * ratio();
  const zoomTo = (z, immediately = false) => {
    vp.zoomTo(image().imageToViewportZoom(z / ratio()), null, immediately);
    vp.applyConstraints(immediately);
  };
  const centre = () => image().viewportToImageCoordinates(vp.getCenter(true));
  const goTo = (x, y, immediately = false) =>
    vp.panTo(image().imageToViewportCoordinates(new OpenSeadragon.Point(x, y)), immediately);

  // settle moves the view by less than a device pixel, so that the pixels of
  // the drawn level fall on those of the screen.
  const settle = () => {
    if (vp.getRotation() % 360 !== 0) return;
    const corner = vp.viewportToViewerElementCoordinates(new OpenSeadragon.Point(0, 0));
    const dx = snap(corner.x * ratio()) / ratio(), dy = snap(corner.y * ratio()) / ratio();
    if (Math.hypot(dx, dy) < 1e-3) return;
    vp.panBy(vp.deltaPointsFromPixels(new OpenSeadragon.Point(-dx, -dy)), true);
  };

  return { zoom, zoomTo, centre, goTo, settle, ratio };
}
