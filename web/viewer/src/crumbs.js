// The way from the library's root to the shown folder.

export function crumbs(nav, place, address) {
  const names = place.folder ? place.folder.split("/") : [];
  const out = [link("All slides", "", address, names.length === 0)];
  names.forEach((name, i) => {
    out.push("/", link(name, names.slice(0, i + 1).join("/"), address, i === names.length - 1));
  });
  nav.replaceChildren(...out);
}

function link(text, folder, address, current) {
  const a = document.createElement("a");
  a.textContent = text;
  a.href = address(folder);
  a.dataset.folder = folder;
  if (current) a.setAttribute("aria-current", "page");
  return a;
}
