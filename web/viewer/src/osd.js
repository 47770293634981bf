// OpenSeadragon, set up for slides.
import OpenSeadragon from "openseadragon";

export function openSlide(element, source) {
  const viewer = OpenSeadragon({
    element, drawer: "canvas", tileSources: source, crossOriginPolicy: false,
    showNavigationControl: false, showNavigator: true, navigatorPosition: "TOP_RIGHT", navigatorSizeRatio: 0.16,
    navigatorDisplayRegionColor: "#d22", navigatorBackground: "#fff",
    animationTime: 0.5, springStiffness: 9, blendTime: 0, alwaysBlend: false, immediateRender: false,
    // The next finer level from a little above half its size: at exactly half,
    // a third ... of the slide the level of that very size is drawn, untouched.
    minPixelRatio: 0.55, maxZoomPixelRatio: 16, minZoomImageRatio: 0.5, visibilityRatio: 0.2,
    imageLoaderLimit: 12, maxImageCacheCount: 600, timeout: 60000, preload: false,
    gestureSettingsMouse: { clickToZoom: false, dblClickToZoom: true }, gestureSettingsTouch: { pinchRotate: false },
    zoomPerScroll: 1.3,
  });
  crisp(viewer);
  return viewer;
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
