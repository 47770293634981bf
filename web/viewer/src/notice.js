// One quiet line above the slide; the first of those that have something to say.

export function noticeLine(element) {
  const said = new Map();
  return (from, text) => {
    if (text) said.set(from, text);
    else said.delete(from);
    const [first] = said.values();
    element.hidden = !first;
    element.textContent = first ?? "";
  };
}
