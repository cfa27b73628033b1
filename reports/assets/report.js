// Makes the lane pictures zoom and pan, and shows what a span is at once. Without it the pictures
// still stand, with the browser's own tooltips.
const enliven = (() => {
  const SVG = 'http://www.w3.org/2000/svg', LETTER = 5.4, KEEP = 700, GUTTER = 112;
  const {tell} = parts;
  document.documentElement.classList.add('live-page');

  function make(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
  }

  function tickStep(length, most) {
    const step = 10 ** Math.floor(Math.log10(length / most));
    for (const factor of [1, 2, 5, 10]) if (length / (step * factor) <= most) return step * factor;
    return step * 10;
  }

  function tickLabel(at, step) {
    const short = value => String(+value.toPrecision(9));
    if (at === 0) return '0';
    if (step < 1e3) return short(at / (at < 1e5 ? 1 : 1e3)) + (at < 1e5 ? ' ns' : ' us');
    if (step < 1e6) return short(at / 1e3) + ' us';
    if (step < 1e9) return short(at / 1e6) + ' ms';
    return short(at / 1e9) + ' s';
  }

  function enliven(picture) {
    const svg = picture.querySelector('svg.lanes');
    const wide = {left: +svg.dataset.left, right: +svg.dataset.right, width: svg.viewBox.baseVal.width};
    const end = +svg.dataset.end, height = svg.viewBox.baseVal.height;
    let {left, right} = wide;
    const top = +svg.dataset.top, bottom = +svg.dataset.bottom, minimum = Math.min(end, 50);
    const axis = svg.querySelector('.axis'), labels = svg.querySelector('.labels');
    const boxes = [...svg.querySelectorAll('rect[data-b]')].map(rect => ({
      rect, begin: +rect.dataset.b, end: +rect.dataset.e, label: rect.dataset.l, y: +rect.getAttribute('y'),
      height: +rect.getAttribute('height'),
      reads: rect.matches('.first, .c-host-wait, .c-waiting') ? 'on-light' : rect.matches('.c-copy') ? 'on-copy' : 'on-solid'}));
    const arrows = [...svg.querySelectorAll('path[data-a]')].map(path => ({path, at: path.dataset.a.split(' ').map(Number)}));
    for (const rect of svg.querySelectorAll('rect.s')) {
      const title = rect.querySelector('title');
      if (title) { rect.description = title.textContent; title.remove(); }
    }
    const name = svg.querySelector(':scope > title');
    svg.setAttribute('aria-label', 'Timeline of ' + (name?.textContent ?? ''));
    name?.remove();  // it would show under every tooltip
    let from = 0, to = end, queued = false;

    function draw() {
      queued = false;
      const scale = (right - left) / (to - from), x = ns => left + (ns - from) * scale;
      labels.replaceChildren();
      for (const box of boxes) {
        const hidden = box.end < from || box.begin > to;
        box.rect.style.display = hidden ? 'none' : '';
        if (hidden) continue;
        const full = Math.max((box.end - box.begin) * scale, .8), width = full > 3 ? full - .7 : full, at = x(box.begin);
        box.rect.setAttribute('x', at);
        box.rect.setAttribute('width', width);
        const seen = Math.min(at + width, right) - Math.max(at, left);
        if (box.label && seen > LETTER * box.label.length + 6) {
          make(labels, 'text', {class: 'label ' + box.reads, x: Math.max(at, left) + 4,
            y: box.y + box.height - 4}, box.label);
        }
      }
      for (const {path, at: [a, y1, b, y2]} of arrows) {
        const middle = (y1 + y2) / 2;
        path.setAttribute('d', `M${x(a)} ${y1} C${x(a)} ${middle} ${x(b)} ${middle} ${x(b)} ${y2}`);
      }
      axis.replaceChildren();
      const step = tickStep(to - from, Math.max(2, Math.min(10, Math.floor((right - left) / 75))));
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        make(axis, 'line', {class: 'grid', x1: x(at), x2: x(at), y1: top - 6, y2: bottom});
        make(axis, 'text', {class: 'tick', x: x(at), y: top - 11}, tickLabel(at, step));
      }
    }
    // On a narrow screen a pixel of the picture is one of the screen: the plot gets narrower, not
    // its letters; the legend wraps.
    function fit() {
      const room = picture.clientWidth, narrow = room < KEEP, width = narrow ? room : wide.width;
      if (!room || svg.viewBox.baseVal.width === width && !narrow) return;
      left = narrow ? GUTTER : wide.left;
      right = narrow ? width - 8 : wide.right;
      for (const rect of svg.querySelectorAll('rect.band, clipPath rect')) {
        rect.setAttribute('x', left);
        rect.setAttribute('width', right - left);
      }
      for (const line of svg.querySelectorAll('.rowline')) line.setAttribute('x2', right);
      for (const side of svg.querySelectorAll('.side')) side.style.display = narrow ? 'none' : '';
      for (const text of svg.querySelectorAll('.lane, .group')) text.setAttribute('x', narrow ? 8 : 16);
      let x = narrow ? 8 : left, y = bottom + 10;
      for (const key of svg.querySelectorAll('.key')) {
        if (x + +key.dataset.w > right) { x = narrow ? 8 : left; y += 18; }
        key.setAttribute('transform', `translate(${x} ${y})`);
        x += +key.dataset.w;
      }
      svg.setAttribute('viewBox', `0 0 ${width} ${Math.max(height, y + 20)}`);
      draw();
    }
    function show(newFrom, newTo) {
      const length = Math.min(Math.max(newTo - newFrom, minimum), end);
      from = Math.min(Math.max(newFrom, 0), end - length);
      to = from + length;
      if (!queued) { queued = true; requestAnimationFrame(draw); }
    }
    function zoom(factor, around) {
      show(around - (around - from) * factor, around + (to - around) * factor);
    }
    function timeAt(event) {
      const frame = svg.getBoundingClientRect(), px = (event.clientX - frame.left) / frame.width * svg.viewBox.baseVal.width;
      return from + (Math.min(Math.max(px, left), right) - left) / (right - left) * (to - from);
    }

    svg.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(event.deltaY * .0025), timeAt(event));
    }, {passive: false});
    svg.addEventListener('dblclick', event => zoom(.4, timeAt(event)));
    const fingers = new Map();
    let drag = null, pinch = null;
    const apart = () => { const [a, b] = [...fingers.values()]; return Math.max(24, Math.abs(a.clientX - b.clientX)); };
    svg.addEventListener('pointerdown', event => {
      fingers.set(event.pointerId, event);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()];
        pinch = {apart: apart(), around: timeAt({clientX: (a.clientX + b.clientX) / 2}), from, to};
        drag = null;
        return;
      }
      drag = {x: event.clientX, from, to, on: event.target.description, moved: false};
      svg.setPointerCapture(event.pointerId);
      picture.classList.add('dragging');
    });
    svg.addEventListener('pointermove', event => {
      if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event);
      if (pinch && fingers.size === 2) {
        const factor = pinch.apart / apart();
        show(pinch.around - (pinch.around - pinch.from) * factor, pinch.around + (pinch.to - pinch.around) * factor);
        return;
      }
      if (drag) {
        const frame = svg.getBoundingClientRect();
        const perPixel = (drag.to - drag.from) / (right - left) * svg.viewBox.baseVal.width / frame.width;
        const by = (drag.x - event.clientX) * perPixel;
        drag.moved ||= Math.abs(drag.x - event.clientX) > 6;
        show(drag.from + by, drag.to + by);
      }
      tell(!drag && event.target.description, event);
    });
    function drop(event) {
      fingers.delete(event.pointerId);
      if (fingers.size < 2) pinch = null;
      // A finger does not hover: a tap tells.
      if (drag && !drag.moved && event.pointerType === 'touch') tell(event.type === 'pointerup' && drag.on, event);
      drag = null;
      picture.classList.remove('dragging');
    }
    svg.addEventListener('pointerup', drop);
    svg.addEventListener('pointercancel', drop);
    svg.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') tell('', event); });

    const middle = () => (from + to) / 2, shift = share => show(from + (to - from) * share, to + (to - from) * share);
    const actions = {in: () => zoom(.5, middle()), out: () => zoom(2, middle()), all: () => show(0, end)};
    picture.previousElementSibling.addEventListener('click', event => actions[event.target.dataset.do]?.());
    svg.tabIndex = 0;
    svg.addEventListener('keydown', event => {
      const keys = {'+': actions.in, '-': actions.out, '0': actions.all, ArrowLeft: () => shift(-.2), ArrowRight: () => shift(.2)};
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    picture.classList.add('live');
    if (svg.matches('.packed')) draw();
    new ResizeObserver(fit).observe(picture);
  }
  document.querySelectorAll('.picture').forEach(enliven);
  return enliven;
})();
