// What all pages share: tables that sort by a click on a heading, and what a point of a chart says
// beside the pointer. Without it tables and charts still stand.
const parts = (() => {
  const tip = document.createElement('div');
  tip.id = 'tip';
  document.body.append(tip);

  function tell(text, event) {
    tip.style.display = text ? 'block' : 'none';
    if (!text) return;
    tip.textContent = text;
    const beside = event.clientX + 16 + tip.offsetWidth > innerWidth ? -tip.offsetWidth - 12 : 16;
    const below = event.clientY + 16 + tip.offsetHeight > innerHeight ? -tip.offsetHeight - 12 : 16;
    tip.style.left = Math.max(4, event.clientX + beside) + 'px';
    tip.style.top = Math.max(4, event.clientY + below) + 'px';
  }

  // "12.3 us", "1,234", "35.9 GB of 85.0 GB", "≥ 2 s": the number in its unit; "-7.1 %" by its size;
  // "-" and nothing below all numbers; null: no number.
  const scales = {ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
    KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40};
  function value(text) {
    if (text === '' || text === '-') return -Infinity;
    const [, sign, digits, unit] = text.match(/^[≥≤<>] ?([-+]?)([\d,]*\.?\d+(?:e[-+]?\d+)?) ?([A-Za-z]*|%)/) ??
      text.match(/^([-+]?)([\d,]*\.?\d+(?:e[-+]?\d+)?) ?([A-Za-z]*|%)/) ?? [];
    if (digits === undefined) return null;
    const number = Number(digits.replaceAll(',', '')) * (scales[unit] ?? 1);
    return sign === '-' && unit !== '%' ? -number : number;
  }

  function order(table, column, down) {
    const rows = [...table.tBodies[0].rows].map(row => [row.cells[column]?.textContent.trim() ?? '', row]);
    const numbers = rows.map(([text]) => value(text)), are = numbers.every(one => one !== null);
    const by = rows.map(([text, row], i) => [are ? numbers[i] : text, row]);
    const compare = (a, b) => are ? (a === b ? 0 : a - b) : a.localeCompare(b, 'en', {numeric: true});
    by.sort(([a], [b]) => compare(a, b) * (down ? -1 : 1));
    table.tBodies[0].append(...by.map(([, row]) => row));
  }

  // Numbers: the largest first, then the other way; its state is in the heading.
  function sort(table, column) {
    const headings = table.tHead.rows[0].cells, heading = headings[column];
    const cells = [...table.tBodies[0].rows].map(row => row.cells[column]?.textContent.trim() ?? '');
    const down = heading.ariaSort ? heading.ariaSort === 'ascending' : cells.every(text => value(text) !== null);
    for (const other of headings) other.ariaSort = null;
    heading.ariaSort = down ? 'descending' : 'ascending';
    order(table, column, down);
  }

  // Of a table whose rows were drawn anew: as its heading says.
  function resort(table) {
    const column = [...table.tHead.rows[0].cells].findIndex(heading => heading.ariaSort);
    if (column >= 0) order(table, column, table.tHead.rows[0].cells[column].ariaSort === 'descending');
  }

  function sortable(table) {
    [...table.tHead?.rows[0]?.cells ?? []].forEach((heading, column) => {
      if (heading.querySelector('.unseen, button') || !heading.textContent) return;
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = heading.textContent;
      button.addEventListener('click', () => sort(table, column));
      heading.replaceChildren(button);
    });
  }
  function enliven(within) {
    for (const table of within.querySelectorAll('table')) if (table.tBodies[0]?.rows.length > 1) sortable(table);
  }

  // The point of a chart that is nearest to the pointer, its words from a title that would show late.
  const NEAR = 28;
  function nearest(svg, event) {
    let least = NEAR, found = null;
    for (const dot of svg.querySelectorAll('circle')) {
      const title = dot.querySelector('title');
      if (title) { dot.words = title.textContent; title.remove(); }
      const box = dot.getBoundingClientRect();
      const far = Math.hypot(event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2);
      if (dot.words && far < least) [least, found] = [far, dot];
    }
    return found;
  }
  let near = null;
  document.addEventListener('pointermove', event => {
    const svg = event.target.closest?.('svg.curves, svg.points'), dot = svg && nearest(svg, event);
    if (dot === near && !dot) return;
    near?.classList.remove('near');
    dot?.classList.add('near');
    near = dot;
    tell(dot?.words, event);
  });
  addEventListener('scroll', () => tell('', null), {passive: true, capture: true});
  enliven(document);
  return {tell, sortable, resort, enliven};
})();
