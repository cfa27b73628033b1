'use strict';
// Asks the server with every change: a coarse plan at once, the search behind it. Sets text, never HTML.
const by = id => document.getElementById(id);
const page = [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, '0')).join('');
const factors = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4];
const whatIfs = {nic: 'Network between nodes', nvlink: 'Links between GPUs', gemm: 'Arithmetic', hbm: 'Memory bandwidth', host: 'Host'};
const state = {config: null, coarse: [], rows: [], others: [], plan: 0, chosen: null, asked: 0, abort: null};

const text = (place, words) => { by(place).textContent = words || ''; };
const time = s => s === 0 ? '0' : s >= 100 ? `${s.toFixed(0)} s` : s >= 1 ? `${s.toFixed(2)} s` : s >= 1e-3 ? `${(s * 1e3).toFixed(1)} ms` : `${(s * 1e6).toFixed(0)} us`;
const percent = share => `${(100 * share).toFixed(0)} %`;
const count = value => Math.round(value).toLocaleString('en');
const make = (name, properties, ...inside) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...inside);
  return node;
};

async function post(path, question, signal) {
  const got = await fetch(path, {method: 'POST', body: JSON.stringify(question), headers: {'Content-Type': 'application/json'}, signal});
  const answer = await got.json();
  if (answer.error) throw Object.assign(new Error(answer.error.message), {status: got.status, problem: answer.error});
  return answer;
}

// What is wrong stands beside its input; a config.json's line with a caret below.
function showProblem(problem) {
  for (const node of document.querySelectorAll('p.wrong')) node.textContent = '';
  for (const node of document.querySelectorAll('[aria-invalid]')) node.removeAttribute('aria-invalid');
  by('place-config').hidden = true;
  if (!problem) return;
  const field = by(`wrong-${problem.field}`) ? problem.field : 'all';
  const where = problem.line ? `line ${problem.line}, column ${problem.column}: ` : '';
  text(`wrong-${field}`, where + problem.message + (problem.hint ? ` (${problem.hint.length > 300 ? `${problem.hint.slice(0, 300)} …` : problem.hint})` : ''));
  const input = by(field);
  if (input) {
    input.setAttribute('aria-invalid', 'true');
    input.setAttribute('aria-describedby', `wrong-${field}`);
  }
  const line = field === 'config' && problem.line && state.config ? state.config.split('\n')[problem.line - 1] : undefined;
  if (line === undefined) return;
  const from = Math.max(0, problem.column - 40);
  text('place-config', `${line.slice(from, from + 80)}\n${' '.repeat(problem.column - 1 - from)}^`);
  by('place-config').hidden = false;
}

const whole = id => Number(by(id).value.replaceAll(',', '').replace(/^(\d+)k$/, (_, n) => n * 1024));
function question() {
  const asked = {page, machine: by('machine').value.trim(), gpus: whole('gpus'), global_batch: whole('global_batch'),
    sequence: whole('sequence'), precision: by('precision').value, parameters: by('parameters').value, with: []};
  if (state.config !== null) asked.config = state.config;
  else asked.model = by('model').value.trim();
  for (const name of Object.keys(whatIfs)) {
    const factor = factors[by(`if-${name}`).value];
    if (factor !== 1) asked.with.push(`${name}=${factor}x`);
  }
  if (by('cost').value.trim()) asked.cost_per_gpu_hour = Number(by('cost').value);
  return asked;
}

async function ask() {
  if (state.abort) state.abort.abort();
  const {signal} = state.abort = new AbortController();
  const begin = performance.now(), mine = ++state.asked, asked = question();
  document.querySelector('.answers').classList.add('old');
  try {
    const coarse = await post('plan', {...asked, coarse: true}, signal);
    Object.assign(state, {coarse: coarse.answer.rows, rows: [], others: [], plan: 0, chosen: null});
    showProblem(null);
    const [searched] = coarse.answer.searched;
    const [likely] = state.coarse;
    text('headline', searched.fitting ? `${searched.fitting} of ${count(searched.tried)} layouts fit. ` +
      (likely ? `A step takes at least ${time(likely.at_least_s)} with the likely ones.` : '')
      : `No layout fits: the smallest needs ${searched.least_memory_gb.toFixed(1)} GB of a GPU.`);
    text('meaning', '');
    show(coarse.notes);
    const ms = Math.round(performance.now() - begin);
    by('status').dataset.ms = ms;
    text('status', `Coarse answer in ${ms} ms.${searched.fitting ? ' Simulating the best …' : ''}`);
    if (!searched.fitting) return;
    await new Promise(done => setTimeout(done, 150));
    if (mine !== state.asked) return;
    const full = await post('plan', {...asked, top: 5}, signal);
    Object.assign(state, {rows: full.answer.rows, plan: full.plan});
    const {meaning, searched: [counts]} = full.answer;
    const [best] = state.rows;
    text('headline', best ? `${time(best.step_s)} a step, ${count(best.tokens_per_s_per_gpu)} tokens/s for each GPU, MFU ` +
      `${(100 * best.mfu).toFixed(1)} %, limited by ${best.limited_by || 'nothing that was tried'}.` : counts.refused_why);
    text('meaning', meaning);
    if (best) state.chosen = best;
    show(full.notes);
    text('status', `Coarse answer in ${ms} ms, ${counts.simulated} layouts simulated in ${((performance.now() - begin) / 1e3).toFixed(1)} s.`);
    if (by('axis').value === 'gpus') await askOthers();
  } catch (error) {
    if (error.name === 'AbortError' || mine !== state.asked || error.status === 409) return;
    showProblem(error.problem || {message: `foretrace serve does not answer: ${error.message}`});
    text('status', 'No answer.');
  }
}

// Coarse plans of fewer and more GPUs, for the chart over them.
async function askOthers() {
  const mine = state.asked, asked = question();
  for (const factor of [0.25, 0.5, 2, 4]) {
    const gpus = asked.gpus * factor;
    if (gpus < 1 || !Number.isInteger(gpus)) continue;
    try {
      const more = await post('plan', {...asked, gpus, coarse: true, page: `${page}x`}, state.abort && state.abort.signal);
      if (mine !== state.asked) return;
      state.others.push(...more.answer.rows.slice(0, 8));
      drawChart();
    } catch (error) {
      if (error.name === 'AbortError') return;  // of others: that number of GPUs has no layout
    }
  }
}

function choose(row) {
  state.chosen = row;
  show();
  by('row-title').scrollIntoView({block: 'nearest'});
}

function drawChart() {
  const overGpus = by('axis').value === 'gpus';
  const x = row => overGpus ? row.gpus : row.memory_gb;
  const point = row => ({x: x(row), y: row.step_s, low: row.low_s, high: row.high_s, isChosen: row === state.chosen,
    words: `${row.layout}: ${time(row.step_s)}, ${row.memory_gb.toFixed(1)} GB`, isCoarse: false, choose: () => choose(row)});
  const bound = row => ({x: x(row), y: row.at_least_s, isCoarse: true, words: `${row.gpus} GPUs, ${row.layout}: at least ${time(row.at_least_s)}, ${row.memory_gb.toFixed(1)} GB`});
  const known = new Set(state.rows.map(row => row.layout));
  const points = [...state.rows.map(point), ...state.coarse.filter(row => !known.has(row.layout)).map(bound), ...(overGpus ? state.others.map(bound) : [])];
  by('chart-part').hidden = points.length === 0;
  text('chart-title', overGpus ? 'Time against GPUs' : 'Time against memory');
  if (!points.length) return;
  chart.draw(by('chart'), points, {isLog: overGpus, title: overGpus ? 'GPUs' : 'memory of a GPU, GB', y: time, x: at => count(at),
    words: `Time of a step over ${overGpus ? 'the number of GPUs' : 'the memory of a GPU'}, of ${points.length} layouts; the table has the same figures`});
}

const allColumns = [
  ['layout', row => row.layout, 'layout'],
  ['step', row => row.step_s ? time(row.step_s) : `≥ ${time(row.at_least_s)}`],
  ['band', row => row.low_s ? `${time(row.low_s)} .. ${time(row.high_s)}` : ''],
  ['tokens/s/GPU', row => row.step_s ? count(row.tokens_per_s_per_gpu) : `≤ ${count(row.tokens_per_s_per_gpu_at_most)}`],
  ['MFU', row => row.mfu ? `${(100 * row.mfu).toFixed(1)} %` : ''],
  ['memory', row => `${row.memory_gb.toFixed(1)} GB${row.memory_is_tight ? ' (tight)' : ''}`],
  ['exposed', row => row.step_s ? percent(row.exposed) : ''],
  ['bubble', row => row.step_s ? percent(row.bubble) : ''],
  ['limited by', row => row.limited_by ?? '', 'words'],
  ['cost of 10^12 tokens', row => row.cost_per_1e12_tokens ? count(row.cost_per_1e12_tokens) : ''],
];

function drawTable() {
  const known = new Set(state.rows.map(row => row.layout));
  const rows = [...state.rows, ...state.coarse.filter(row => !known.has(row.layout))];
  const columns = state.rows.some(row => row.cost_per_1e12_tokens) ? allColumns : allColumns.slice(0, -1);
  by('table-part').hidden = rows.length === 0;
  const head = by('layouts').tHead.rows[0], names = columns.map(([name]) => name);
  if ([...head.cells].map(cell => cell.textContent).join() !== names.join()) {
    head.replaceChildren(...columns.map(([name, , kind]) => make('th', {scope: 'col', className: kind ? '' : 'n', textContent: name})));
    parts.sortable(by('layouts'));
  }
  by('layouts').tBodies[0].replaceChildren(...rows.map(row => make('tr', {className: [row.step_s ? '' : 'coarse', row === state.chosen ? 'chosen' : ''].join(' ')},
    ...columns.map(([name, words, kind]) => {
      const cell = make('td', {className: kind || 'n'});
      if (name === 'layout' && row.step_s) cell.append(make('button', {type: 'button', textContent: row.layout, onclick: () => choose(row)}));
      else cell.textContent = words(row);
      return cell;
    }))));
  parts.resort(by('layouts'));
}

function drawRow() {
  const row = state.chosen;
  by('row-part').hidden = !row;
  if (!row) return;
  text('row-title', row.layout);
  text('row-status', '');
  text('scenario', row.scenario);
  by('text-part').hidden = true;
  const open = make('button', {type: 'button', textContent: 'Simulate its timeline', onclick: () => openTimeline(row)});
  const save = make('button', {type: 'button', textContent: 'Save the scenario (YAML)', onclick: () => {
    const link = make('a', {href: URL.createObjectURL(new Blob([row.scenario], {type: 'text/yaml'})), download: `${row.model}_row${row.row}.yaml`});
    link.click();
    URL.revokeObjectURL(link.href);
  }});
  by('row-buttons').replaceChildren(open, save);
  const helps = [...row.remedies.map(one => [one.limits, one.what, one.gain]), ...row.causes.map(one => [`without ${one.cause}`, one.with, one.gain])];
  by('helps').tHead.replaceChildren(make('tr', {}, ...['what would help', 'what if', 'less time'].map((name, i) => make('th', {scope: 'col', className: i === 2 ? 'n' : '', textContent: name}))));
  by('helps').tBodies[0].replaceChildren(...helps.filter(one => one[2] > 0.005).sort((a, b) => b[2] - a[2]).map(([limits, what, gain]) =>
    make('tr', {}, make('td', {textContent: limits}), make('td', {textContent: what}), make('td', {className: 'n', textContent: percent(gain)}))));
  parts.sortable(by('helps'));
}

async function openTimeline(row) {
  text('row-status', 'Simulating …');
  try {
    const run = await post('row', {page: `${page}r`, plan: state.plan, row: row.row});
    if (row !== state.chosen) return;
    text('row-status', 'The trace opens at ui.perfetto.dev, which reads it in the browser and sends it nowhere.');
    text('text', run.text);
    by('text-part').hidden = false;
    by('row-buttons').append(make('a', {className: 'button', href: run.report, target: '_blank', rel: 'noopener', textContent: 'Open the timeline'}),
      make('a', {className: 'button', href: run.trace, download: '', textContent: 'Save the trace for Perfetto'}));
  } catch (error) {
    if (row === state.chosen) text('row-status', error.message);
  }
}

function show(notes) {
  document.querySelector('.answers').classList.remove('old');
  drawChart();
  drawTable();
  drawRow();
  if (notes === undefined) return;
  by('notes-part').hidden = !notes;
  text('notes', notes);
}

let waiting = 0;
function changed() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, 40);
}

async function take(file) {
  if (file.size > 4 << 20) return showProblem({field: 'config', message: 'it is larger than 4 MiB'});
  state.config = await file.text();
  by('config-name').replaceChildren(`${file.name} `, make('button', {type: 'button', textContent: 'use the name above', onclick: () => {
    state.config = null;
    by('config').value = '';
    by('config-name').replaceChildren();
    changed();
  }}));
  changed();
}

async function begin() {
  for (const [name, words] of Object.entries(whatIfs)) {
    const range = make('input', {type: 'range', id: `if-${name}`, min: 0, max: factors.length - 1, step: 1, value: 3});
    const shown = make('output', {textContent: '1x'});
    const say = () => { shown.textContent = `${factors[range.value]}x`; range.setAttribute('aria-valuetext', shown.textContent); };
    range.addEventListener('input', say);
    say();
    by('what-ifs').append(make('div', {className: 'what-if'}, make('label', {htmlFor: range.id, textContent: words}), shown, range));
  }
  for (const id of ['gpus', 'global_batch', 'sequence']) {
    const range = by(`${id}-range`), follow = () => { range.value = Math.log2(whole(id) || 1); range.setAttribute('aria-valuetext', by(id).value); };
    range.addEventListener('input', () => { by(id).value = 2 ** range.value; range.setAttribute('aria-valuetext', by(id).value); });
    by(id).addEventListener('input', follow);
    follow();
  }
  const choices = await (await fetch('choices')).json();
  const options = names => names.map(value => make('option', {value}));
  by('models').replaceChildren(...options(choices.models));
  by('machines').replaceChildren(...options([...choices.machines, ...choices.named, ...choices.gpus.map(gpu => `8x${gpu}`)]));
  by('machine').value = choices.default_machine;
  by('ask').addEventListener('input', event => { if (event.target.type !== 'file') changed(); });
  by('ask').addEventListener('submit', event => { event.preventDefault(); changed(); });
  by('config').addEventListener('change', event => event.target.files.length && take(event.target.files[0]));
  for (const kind of ['dragover', 'dragleave', 'drop']) {
    by('drop').addEventListener(kind, event => {
      event.preventDefault();
      by('drop').classList.toggle('over', kind === 'dragover');
      if (kind === 'drop' && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }
  by('axis').addEventListener('change', () => { drawChart(); if (by('axis').value === 'gpus' && !state.others.length) askOthers(); });
  addEventListener('resize', drawChart);
  ask();
}
begin();
