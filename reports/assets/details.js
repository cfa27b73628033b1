// A page of many runs: the table of all regions sorts and searches, and a run's details are
// unpacked when they are opened or a link leads into them.
(() => {
  async function unpacked(holder) {
    if (holder.tagName === 'TEMPLATE') return holder.innerHTML;
    const bytes = Uint8Array.from(atob(holder.textContent), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Response(stream).text();
  }
  async function fill(more) {
    const body = more.querySelector('.body'), holder = body.querySelector('script, template');
    if (!holder || more.dataset.asked) return;
    more.dataset.asked = 'yes';
    try {
      body.innerHTML = await unpacked(holder);
      body.querySelectorAll('.picture').forEach(enliven);
    } catch (error) {
      body.textContent = 'This browser cannot unpack the details (DecompressionStream is missing).';
    }
  }
  for (const more of document.querySelectorAll('details.more')) {
    more.addEventListener('toggle', () => { if (more.open) fill(more); });
  }
  async function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    const section = document.getElementById(id.split('-')[0]), more = section?.querySelector('details.more');
    if (!more) return;
    await fill(more);
    more.open = true;
    document.getElementById(id)?.scrollIntoView();
  }
  addEventListener('hashchange', follow);
  if (location.hash) follow();

  const table = document.getElementById('overview');
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows], runOf = row => row.querySelector('a').hash.slice(1);
  const places = new Map([...document.querySelectorAll('section.run')].map(run => [run.id, run.querySelector('.where').textContent]));
  const words = rows.map(row => (row.textContent + ' ' + places.get(runOf(row))).toLowerCase());
  const find = document.getElementById('find'), failures = document.getElementById('failures'), found = document.getElementById('found');
  function select() {
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      const is = wanted.every(word => words[i].includes(word)) && (!failures.checked || row.classList.contains('fails'));
      row.hidden = !is;
      if (is) ++shown;
    });
    found.textContent = `${shown} of ${rows.length}`;
    const runs = new Set(rows.filter(row => !row.hidden).map(runOf));
    for (const section of document.querySelectorAll('section.run')) section.hidden = !runs.has(section.id);
  }
  // "12.3 us" in nanoseconds, "-7.1 %" by its size, "-" last; other text as it is.
  const units = {ns: 1, us: 1e3, ms: 1e6, s: 1e9, '%': 1};
  function value(text) {
    const [, number, unit] = text.match(/^([-+]?[\d.]+) (ns|us|ms|s|%)$/) ?? [];
    return unit === '%' ? Math.abs(number) : unit ? number * units[unit] : text === '-' ? -1 : text;
  }
  function sort(heading, column) {
    const order = rows.map(row => [value(row.cells[column].textContent.trim()), row]);
    const numbers = order.every(([a]) => typeof a === 'number');
    const down = heading.ariaSort ? heading.ariaSort === 'ascending' : numbers;  // numbers: the largest first
    for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
    heading.ariaSort = down ? 'descending' : 'ascending';
    order.sort(([a], [b]) => (numbers ? a - b : String(a).localeCompare(String(b), 'en', {numeric: true})) * (down ? -1 : 1));
    body.append(...order.map(([, row]) => row));
  }
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.querySelector('.unseen')) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = heading.textContent;
    button.addEventListener('click', () => sort(heading, column));
    heading.replaceChildren(button);
  });
  find.addEventListener('input', select);
  failures.addEventListener('change', select);
  document.querySelector('.finder').hidden = false;
  select();
})();
