// Makes the lane pictures zoom and pan, and shows what a span is at once. Without it the pictures
// still stand, with the browser's own tooltips.
(() => {
  const SVG = 'http://www.w3.org/2000/svg', LETTER = 5.4;
  const tip = document.createElement('div');
  tip.id = 'tip';
  document.body.append(tip);
  document.documentElement.classList.add('live-page');

  function make(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
  }

  function tickStep(length) {
    const step = 10 ** Math.floor(Math.log10(length / 10));
    for (const factor of [1, 2, 5, 10]) if (length / (step * factor) <= 10) return step * factor;
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
    const left = +svg.dataset.left, right = +svg.dataset.right, end = +svg.dataset.end;
    const top = +svg.dataset.top, bottom = +svg.dataset.bottom, minimum = Math.min(end, 50);
    const axis = svg.querySelector('.axis'), labels = svg.querySelector('.labels');
    const boxes = [...svg.querySelectorAll('rect[data-b]')].map(rect => ({
      rect, begin: +rect.dataset.b, end: +rect.dataset.e, label: rect.dataset.l, y: +rect.getAttribute('y'),
      height: +rect.getAttribute('height'),
      reads: rect.matches('.first, .c-host-wait') ? 'on-light' : rect.matches('.c-copy') ? 'on-copy' : 'on-solid'}));
    const arrows = [...svg.querySelectorAll('path[data-a]')].map(path => ({path, at: path.dataset.a.split(' ').map(Number)}));
    for (const rect of svg.querySelectorAll('rect.s')) {
      const title = rect.querySelector('title');
      if (title) { rect.description = title.textContent; title.remove(); }
    }
    svg.querySelector(':scope > title')?.remove();  // it would show under every tooltip
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
      const step = tickStep(to - from);
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        make(axis, 'line', {class: 'grid', x1: x(at), x2: x(at), y1: top - 6, y2: bottom});
        make(axis, 'text', {class: 'tick', x: x(at), y: top - 11}, tickLabel(at, step));
      }
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
    let drag = null;
    svg.addEventListener('pointerdown', event => {
      drag = {x: event.clientX, from, to};
      svg.setPointerCapture(event.pointerId);
      picture.classList.add('dragging');
    });
    svg.addEventListener('pointermove', event => {
      if (drag) {
        const frame = svg.getBoundingClientRect();
        const perPixel = (drag.to - drag.from) / (right - left) * svg.viewBox.baseVal.width / frame.width;
        const by = (drag.x - event.clientX) * perPixel;
        show(drag.from + by, drag.to + by);
      }
      const text = !drag && event.target.description;
      tip.style.display = text ? 'block' : 'none';
      if (!text) return;
      tip.textContent = text;
      const beside = event.clientX + 16 + tip.offsetWidth > innerWidth ? -tip.offsetWidth - 12 : 16;
      const below = event.clientY + 16 + tip.offsetHeight > innerHeight ? -tip.offsetHeight - 12 : 16;
      tip.style.left = event.clientX + beside + 'px';
      tip.style.top = event.clientY + below + 'px';
    });
    const drop = () => { drag = null; picture.classList.remove('dragging'); };
    svg.addEventListener('pointerup', drop);
    svg.addEventListener('pointercancel', drop);
    svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; });

    const middle = () => (from + to) / 2, shift = share => show(from + (to - from) * share, to + (to - from) * share);
    const actions = {in: () => zoom(.5, middle()), out: () => zoom(2, middle()), all: () => show(0, end)};
    picture.previousElementSibling.addEventListener('click', event => actions[event.target.dataset.do]?.());
    svg.tabIndex = 0;
    svg.addEventListener('keydown', event => {
      const keys = {'+': actions.in, '-': actions.out, '0': actions.all, ArrowLeft: () => shift(-.2), ArrowRight: () => shift(.2)};
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    picture.classList.add('live');
  }
  document.querySelectorAll('.picture').forEach(enliven);
})();
