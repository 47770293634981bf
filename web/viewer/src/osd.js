// OpenSeadragon, set up for slides.
import OpenSeadragon from "openseadragon";
import { SnappedDrawer } from "./drawer.js";
import { retryOptions } from "./retry.js";

export function openSlide(element, source) {
  const viewer = OpenSeadragon({
    element, drawer: SnappedDrawer, smoothTileEdgesMinZoom: Infinity, tileSources: source, crossOriginPolicy: false,
    showNavigationControl: false, showNavigator: true, navigatorPosition: "TOP_RIGHT", navigatorSizeRatio: 0.16,
    navigatorAutoFade: false, navigatorOpacity: 1, navigatorDisplayRegionColor: "#d22", navigatorBackground: "#fff",
    animationTime: 0.5, springStiffness: 9, blendTime: 0, alwaysBlend: false, immediateRender: false,
    // The next finer level from a little above half its size: at exactly half, a
    // quarter and so on, the level of that very size is drawn, untouched.
    minPixelRatio: 0.55, maxZoomPixelRatio: 16, minZoomImageRatio: 0.5, visibilityRatio: 0.2,
    imageLoaderLimit: 12, maxImageCacheCount: 600, timeout: 60000, preload: false,
    gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true }, gestureSettingsTouch: { pinchRotate: false },
    zoomPerScroll: 1.3, ...retryOptions,
  });
  crisp(viewer);
  sayBusy(viewer, element);
  return viewer;
}

// sayBusy marks the element while parts of the slide are still on their way.
function sayBusy(viewer, element) {
  element.setAttribute("aria-busy", "true");
  viewer.world.addHandler("add-item", ({ item }) => {
    item.addHandler("fully-loaded-change", ({ fullyLoaded }) => element.setAttribute("aria-busy", String(!fullyLoaded)));
  });
}

// crisp shows the slide's pixels as squares where they are enlarged.
function crisp(viewer) {
  let smooth = null;
  viewer.addHandler("update-viewport", () => {
    const image = viewer.world.getItemAt(0);
    if (!image) return;
    const want = image.viewportToImageZoom(viewer.viewport.getZoom(true)) * (window.devicePixelRatio || 1) < 0.999;
    if (want === smooth) return;
    smooth = want;
    viewer.drawer.setImageSmoothingEnabled(want);
  });
}
