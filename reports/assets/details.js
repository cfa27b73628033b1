// A page of many runs: the table of all regions is searched, and a run's details are
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
      parts.enliven(body);
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
  const rows = [...table.tBodies[0].rows], runOf = row => row.querySelector('a').hash.slice(1);
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
  find.addEventListener('input', select);
  failures.addEventListener('change', select);
  document.querySelector('.finder').hidden = false;
  select();
})();
