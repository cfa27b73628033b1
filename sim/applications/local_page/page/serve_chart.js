'use strict';
// Points of two values each, and the line of those that nothing beats in both.
const chart = (() => {
  const make = (name, attributes, text) => {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  // 1, 2, 5 times powers of ten; on a logarithmic axis 1, 2, 4, ...
  const ticks = (low, high, isLog) => {
    const all = [];
    if (isLog) {
      for (let at = 2 ** Math.ceil(Math.log2(low)); at <= high * 1.001; at *= 2) all.push(at);
      while (all.length > 8) all.splice(0, all.length, ...all.filter((_, i) => i % 2 === 0));
      return all;
    }
    const step = 10 ** Math.floor(Math.log10((high - low) / 4 || 1));
    const by = [1, 2, 5, 10].map(one => one * step).find(one => (high - low) / one <= 6);
    for (let at = Math.ceil(low / by) * by; at <= high + by / 1e6; at += by) all.push(Number(at.toPrecision(6)));
    return all;
  };
  const front = points => {
    let least = Infinity;
    return [...points].sort((a, b) => a.x - b.x || a.y - b.y).filter(one => one.y < least && ((least = one.y), true));
  };

  // points: {x, y, low, high, isCoarse, isChosen, words, choose}
  const draw = (place, points, axis) => {
    const width = Math.max(300, place.clientWidth), height = Math.min(320, Math.max(220, width * 0.42));
    const left = 58, right = 14, top = 12, bottom = 40;
    const svg = make('svg', {class: 'points', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': axis.words});
    const xs = points.map(one => one.x), ys = points.flatMap(one => [one.low || one.y, one.high || one.y]);
    const range = (values, isLog) => {
      const low = Math.min(...values), high = Math.max(...values);
      return isLog ? [low / 1.3, high * 1.3] : [Math.max(0, low - (high - low || low) * 0.15), high + (high - low || high) * 0.1];
    };
    const [x0, x1] = range(xs, axis.isLog), [y0, y1] = range(ys, false);
    const firm = points.filter(one => !one.isCoarse);
    const of = value => axis.isLog ? Math.log(value) : value;
    const px = x => left + (of(x) - of(x0)) / (of(x1) - of(x0)) * (width - left - right);
    const py = y => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
    for (const at of ticks(y0, y1, false)) {
      svg.append(make('line', {class: 'grid', x1: left, x2: width - right, y1: py(at), y2: py(at)}),
        make('text', {x: left - 7, y: py(at) + 4, 'text-anchor': 'end'}, axis.y(at)));
    }
    for (const at of ticks(x0, x1, axis.isLog)) {
      svg.append(make('text', {x: px(at), y: height - bottom + 17, 'text-anchor': 'middle'}, axis.x(at)));
    }
    svg.append(make('text', {x: width - right, y: height - 6, 'text-anchor': 'end'}, axis.title));
    svg.append(make('path', {class: 'front', d: front(axis.isLog || !firm.length ? points : firm).map((one, i) => `${i ? 'L' : 'M'}${px(one.x)} ${py(one.y)}`).join('')}));
    for (const one of [...points].sort((a, b) => b.isCoarse - a.isCoarse)) {
      if (one.low) svg.append(make('line', {class: 'band', x1: px(one.x), x2: px(one.x), y1: py(one.low), y2: py(one.high)}));
      const dot = make('circle', {cx: px(one.x), cy: py(one.y), r: 5,
        class: [one.isCoarse && 'coarse', one.choose && 'known', one.isChosen && 'chosen'].filter(Boolean).join(' ')});
      dot.append(make('title', {}, one.words));
      if (one.choose) dot.addEventListener('click', one.choose);
      svg.append(dot);
    }
    place.replaceChildren(svg);
  };
  return {draw, front};
})();
