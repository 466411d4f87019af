"use strict";
// Draws the charts, the data tables under them and the question explorer from the JSON islands of the page.
// Model text reaches the document through textContent only; nothing is fetched, and nothing is evaluated as code.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const theme = read("theme-data"), figures = read("figures-data"), tables = read("tables-data"), explorers = read("explorers-data");

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else if (name === "on") for (const [event, action] of Object.entries(value)) element.addEventListener(event, action);
      else if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };

  // ------------------------------------------------------------------------------------------------------- downloads
  const save = (name, type, text) => {
    const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    // A spreadsheet runs text that begins like a formula; a number that is written as text does not need guarding.
    const guarded = typeof value === "string" && /^[=+\-@\t\r]/.test(value) && (value.trim() === "" || !Number.isFinite(Number(value)));
    const text = (guarded ? "'" : "") + value;
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const csv = (columns, rows) => [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

  // ---------------------------------------------------------------------------------------------------------- charts
  // Colours of the light theme become CSS variables, so that dark mode and print need no redrawing.
  const themed = (value) => {
    if (typeof value === "string") return value in theme.names ? `var(--${theme.names[value]})` : value;
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v)]));
    return value;
  };
  const config = themed({ ...theme.config, aria: false });
  const refuse = () => Promise.reject(new Error("a report loads nothing"));
  const loader = { load: refuse, sanitize: refuse, http: refuse, file: refuse, options: {} };
  const values = (figure) => figure.rows.map((row) => Object.fromEntries(figure.columns.map((name, i) => [name, row[i]])));
  const chosen = (name) => document.querySelector(`[data-view="${name}"]`)?.value ?? Object.keys(figures[name].views)[0];
  const full = (name) => ({ $schema: "https://vega.github.io/schema/vega-lite/v6.json", data: { values: values(figures[name]) }, ...figures[name].views[chosen(name)] });

  const tip = document.getElementById("tip");
  const tooltip = (_handler, event, _item, value) => {
    if (value === null || value === undefined || value === "") { tip.hidden = true; return; }
    const list = make("dl");
    for (const [name, said] of Object.entries(typeof value === "object" ? value : { "": value })) list.append(make("dt", {}, name), make("dd", {}, String(said)));
    tip.replaceChildren(list);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const y = event.clientY + 16 + box.height > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
    tip.style.transform = `translate(${Math.max(8, x)}px, ${Math.max(8, y)}px)`;
  };

  // On a phone the names beside a dot plot are broken into more lines, which need higher rows, and so are titles of axes.
  const narrow = (spec, room) => {
    const letters = Math.floor(room * 0.42 / 6.4);
    let lines = 1;
    const walk = (part) => {
      for (const [name, value] of Object.entries(part)) {
        if (name === "axis" && typeof value?.title === "string") value.title = broken(value.title, Math.floor((room - 50) / 6.4));
        if (name === "axis" && value?.labelExpr?.startsWith("split(")) {
          const shorter = (words) => words.replaceAll(/\d+(?=\})/g, (most) => String(Math.min(Number(most), letters)));
          value.labelExpr = shorter(value.labelExpr);
          value.labelOffset.expr = shorter(value.labelOffset.expr);
          const parts = new RegExp(`([^ ]{${letters}}|.{1,${letters}}(?: +|$))`, "g");
          lines = Math.max(lines, ...part.sort.map((label) => label.replaceAll(" = ", "\u00a0=\u00a0").replaceAll(parts, "$1\n").trim().split("\n").length));
        }
        if (value && typeof value === "object" && name !== "data") walk(value);
      }
    };
    walk(spec);
    if (spec.height?.step) spec.height = { step: Math.max(spec.height.step, 14 * lines + 8) };
  };
  const broken = (text, most) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = `${lines.at(-1)} ${word}`.trim();
      if (line.length <= most) lines[lines.length - 1] = line; else lines.push(word);
    }
    return lines;
  };

  const views = {};
  const draw = async (name) => {
    const figure = document.querySelector(`[data-figure="${name}"]`), place = figure.querySelector(".chart"), room = place.clientWidth;
    say(name, figure);
    if (!room) return;
    const spec = { ...themed(figures[name].views[chosen(name)]), data: { values: values(figures[name]) }, padding: 2 };
    spec.width ??= room;
    narrow(spec, room);
    if (room < 420 && typeof spec.height === "number") spec.height = Math.min(spec.height, 260);
    views[name]?.finalize();
    const canvas = make("div", { "aria-hidden": "true" });  // Vega gives it a role and a label; the place keeps ours
    place.replaceChildren(canvas);
    // A title that begins at the left runs on under the labels at the ends of lines, rather than out of a narrow page.
    const here = room < 480 ? { ...config, axisX: { ...config.axisX, titleAnchor: "start", titleAlign: "left" } } : config;
    const compiled = vegaLite.compile(spec, { config: here, logger: vega.logger(vega.Error) }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vega.expressionInterpreter, renderer: "svg", container: canvas, hover: true, loader, tooltip, logLevel: vega.Warn,
    });
    views[name] = view;
    await view.runAsync();
    // Labels at the ends of lines and axis labels take room beside the plot: give the plot what is left.
    for (let turn = 0; turn < 2; turn += 1) {
      const over = Number(place.querySelector("svg").getAttribute("width")) - room;
      if (over <= 0) break;
      await view.width(Math.max(90, view.width() - over)).runAsync();
    }
    place.dataset.drawn = String(room);
  };

  // The words of a figure follow the view that is chosen: its name, which print shows, its description and its note.
  const say = (name, figure) => {
    const view = chosen(name), { alts, notes, note: first } = figures[name], note = notes[view] ?? first, below = figure.querySelector(".note"), viewed = figure.querySelector(".viewed");
    figure.querySelector(".chart").setAttribute("aria-label", alts[view]);
    below.textContent = note;
    below.hidden = !note;
    if (viewed) viewed.textContent = view;
  };

  // The picture for a paper is drawn anew, at its own width and in the colours of the light theme: none of it is cut.
  const paper = async (name) => {
    const view = chosen(name), { title, views: all, alts } = figures[name], several = Object.keys(all).length > 1;
    const compiled = vegaLite.compile({ width: theme.width, ...full(name) }, { config: { ...theme.config, background: "white" }, logger: vega.logger(vega.Error) }).spec;
    const drawn = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: vega.expressionInterpreter, renderer: "none", loader, logLevel: vega.Warn });
    const picture = new DOMParser().parseFromString(await drawn.toSVG(), "image/svg+xml"), root = picture.documentElement;
    drawn.finalize();
    const part = (tag, text) => { const made = picture.createElementNS(root.namespaceURI, tag); made.textContent = text; return made; };
    root.prepend(part("title", several ? `${title}: ${view}` : title), part("desc", alts[view]));
    return new XMLSerializer().serializeToString(picture);
  };
  const slug = (text) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
  const file = (name) => Object.keys(figures[name].views).length > 1 ? `${name}-${slug(chosen(name))}` : name;

  const list = (name, place) => {
    const { columns, shown, rows } = figures[name], most = 500;
    const index = shown.map((column) => columns.indexOf(column));
    const body = rows.slice(0, most).map((row) => make("tr", {}, ...index.map((i) => make("td", typeof row[i] === "number" ? { class: "n" } : {}, row[i] === null ? "–" : String(row[i])))));
    place.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...shown.map((column) => make("th", { scope: "col" }, column)))), make("tbody", {}, ...body)));
    if (rows.length > most) place.append(make("p", { class: "note" }, `The first ${most} of ${rows.length} rows; the CSV has all.`));
  };

  const startCharts = async () => {
    for (const place of document.querySelectorAll("[data-figure]")) {
      const name = place.dataset.figure;
      place.querySelector("select")?.addEventListener("change", () => draw(name));
      place.querySelector(".data").addEventListener("toggle", (event) => { if (event.target.open) list(name, place.querySelector(".scroll")); });
      place.querySelector("[data-csv]").addEventListener("click", () => {
        const { columns, shown, rows } = figures[name], index = shown.map((column) => columns.indexOf(column));
        save(`${name}.csv`, "text/csv", csv(shown, rows.map((row) => index.map((i) => row[i]))));
      });
      place.querySelector("[data-svg]").addEventListener("click", async () => save(`${file(name)}.svg`, "image/svg+xml", await paper(name)));
      place.querySelector("[data-spec]").addEventListener("click", () => save(`${file(name)}.vl.json`, "application/json", JSON.stringify({ ...full(name), config: theme.config }, null, 1)));
    }
    for (const button of document.querySelectorAll("[data-table]")) {
      const { columns, rows } = tables[button.dataset.table];
      button.addEventListener("click", () => save(`${button.dataset.table}.csv`, "text/csv", csv(columns, rows)));
    }
    for (const button of document.querySelectorAll("[data-picture]")) {
      const source = button.closest(".picture").querySelector("img").src, bytes = atob(source.slice(source.indexOf(",") + 1));
      button.addEventListener("click", () => save(`${slug(button.dataset.picture)}.svg`, "image/svg+xml", Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))));
    }
    for (const name of Object.keys(figures)) {
      await draw(name);
      await new Promise((done) => setTimeout(done));  // the page stays responsive between charts
    }
    document.documentElement.dataset.ready = "charts";
  };
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const place of document.querySelectorAll("[data-figure] .chart")) if (Math.abs(Number(place.dataset.drawn) - place.clientWidth) > 4) draw(place.parentElement.dataset.figure);
    }, 150);
  });

  // -------------------------------------------------------------------------------------------------------- explorer
  // Rounded as in the text of the page: 6.25 is 6.2 there too.
  const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1, roundingMode: "halfEven" });
  const percent = (value) => value === null ? "–" : `${tenths.format(100 * value)} %`;
  const number = (value) => value === null ? "–" : Math.abs(value) >= 999.5 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  const said = { percent, number, count: number, text: (value) => value ?? "–" };
  const names = ["< 1 %", "1–5 %", "5–20 %", "20–50 %", "50–80 %", "80–95 %", "> 95 %"];

  const written = (candidate) => {
    const block = make("pre", { tabindex: "0", dir: "auto" });
    let at = 0, run = null, kind = "";
    const flush = () => { if (run) block.append(kind.trim() === "p6" ? run : make("span", { class: kind.trim() }, run)); };
    candidate.parts.forEach((part, i) => {
      if (i) { flush(); run = null; block.append(make("span", { class: "cut" }, ` … ${candidate.left.toLocaleString("en")} characters left out … `)); }
      if (!part.levels) { block.append(part.text); return; }
      at = 0; run = ""; kind = "";
      for (let token = 0; token < part.levels.length; token += 1) {
        const size = part.sizes ? (typeof part.sizes === "string" ? parseInt(part.sizes[token], 36) : part.sizes[token]) : 1, code = part.levels[token];
        const next = code === "f" ? "forced" : code === "x" ? "" : `p${code}`;
        if (next !== kind) { flush(); run = ""; kind = next; }
        run += part.text.slice(at, at + size);
        at += size;
      }
      flush();
      run = null;
    });
    flush();
    return block;
  };
  const legend = () => make("div", { class: "key" }, "Probability of the token as written:", ...names.map((name, i) => make("span", { class: `p${i}` }, name)), make("span", { class: "forced" }, "written by the protocol"));
  const strip = (levels) => make("div", { class: "strip", role: "img", "aria-label": "Probability of the tokens as written, from the first to the last; darker is less probable" }, ...[...levels].map((code) => make("span", { class: code === "x" || code === "f" ? "p6" : `p${code}` })));

  const candidate = (bank, one) => {
    const kind = one.grade === null ? ["none", "not graded"] : one.grade >= 1 ? ["right", "✓ right"] : one.grade > 0 ? ["none", percent(one.grade)] : ["wrong", "✗ wrong"];
    const facts = [one.tokens === null ? null : `${one.tokens.toLocaleString("en")} tokens`, one.ended === "unknown" ? null : `ended: ${one.ended}`, ...bank.signals.map((name, i) => one.signals[i] === null ? null : `${name} ${number(one.signals[i])}`)];
    const box = make("details", { class: "cand" }, make("summary", {},
      make("span", { class: "fact" }, `#${one.sample}`), make("span", { class: `mark ${kind[0]}` }, kind[1]),
      make("span", { class: "answer", dir: "auto" }, one.answer ?? "no answer"), ...facts.filter(Boolean).map((fact) => make("span", { class: "fact" }, fact))));
    box.addEventListener("toggle", () => {
      if (!box.open || box.children.length > 1) return;
      if (one.strip) box.append(strip(one.strip));
      box.append(one.parts ? written(one) : make("pre", {}, "The text was not recorded."));
    });
    return box;
  };

  const detail = (bank, question, span) => make("tr", { class: "detail" }, make("td", { colspan: span }, make("div", { class: "inner" },
    question.prompt ? make("p", { class: "whole", dir: "auto" }, question.prompt) : null, bank.coloured ? legend() : null,
    make("div", { class: "cands" }, ...question.candidates.map((one) => candidate(bank, one))),
    question.more ? make("p", { class: "fact" }, `${question.more} more candidates are in the bank, and not on this page.`) : null)));

  const explore = (place, banks) => {
    const state = { bank: Object.keys(banks)[0], text: "", status: "", group: "", sort: null, down: false, most: 25 };
    const search = make("input", { type: "search", placeholder: "id, prompt, answer" });
    const status = make("select", {}, ...[["", "all"], ["never", "never solved"], ["sometimes", "sometimes solved"], ["always", "always solved"], ["missed", "available, not taken"], ["invalid", "with invalid candidates"]].map(([value, words]) => make("option", { value }, words)));
    const group = make("select"), bank = make("select", {}, ...Object.keys(banks).map((name) => make("option", {}, name)));
    const many = make("span", { class: "many", role: "status" }), printed = make("p", { class: "note printed" });
    const head = make("thead"), body = make("tbody"), more = make("button", { type: "button", class: "more" }, "Show more");
    const label = (words, control) => make("label", {}, words, control);
    const groupLabel = label("Group", group), bankLabel = label("Bank", bank);
    const take = make("button", { type: "button" }, "CSV");
    place.append(make("div", { class: "filters" }, bankLabel, label("Search", search), label("Status", status), groupLabel, take, many),
      make("div", { class: "scroll", role: "region", "aria-label": "Questions", tabindex: "0" }, make("table", {}, head, body)), printed, more);
    bankLabel.hidden = Object.keys(banks).length < 2;

    const found = () => {
      const { columns, questions } = banks[state.bank], wanted = state.text.toLowerCase();
      const fits = (question) => (!state.status || question.status.includes(state.status)) && (!state.group || question.groups.includes(state.group))
        && (!wanted || question.id.toLowerCase().includes(wanted) || question.prompt.toLowerCase().includes(wanted) || question.candidates.some((one) => (one.answer ?? "").toLowerCase().includes(wanted)));
      const kept = questions.filter(fits);
      if (state.sort === null) return kept;
      const i = columns.findIndex((column) => column.key === state.sort), sign = state.down ? -1 : 1;
      const by = (a, b) => {
        const x = a.cells[i], y = b.cells[i];
        if (x === null || y === null) return (x === null) - (y === null);  // what is missing comes last, either way
        return sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
      };
      return [...kept].sort(by);
    };
    const show = () => {
      const here = banks[state.bank], rows = found();
      many.textContent = `${rows.length.toLocaleString("en")} of ${here.questions.length.toLocaleString("en")} questions`;
      head.replaceChildren(make("tr", {}, ...here.columns.map((column) => make("th", { scope: "col", class: column.kind === "text" ? null : "n", title: column.help || null, "aria-sort": state.sort === column.key ? (state.down ? "descending" : "ascending") : "none" },
        make("button", { type: "button", on: { click: () => { state.down = state.sort === column.key ? !state.down : column.kind !== "text"; state.sort = column.key; show(); head.querySelector("[aria-sort=ascending] button, [aria-sort=descending] button").focus(); } } }, column.label)))));
      body.replaceChildren(...rows.slice(0, state.most).map((question) => row(here, question)));
      more.hidden = rows.length <= state.most;
      printed.textContent = `${state.bank}: ${Math.min(rows.length, state.most).toLocaleString("en")} of ${here.questions.length.toLocaleString("en")} questions are printed; the page itself has all of them, with their candidates.`;
    };
    const row = (here, question) => {
      const opener = make("button", { type: "button", class: "open", "aria-expanded": "false", dir: "auto" }, question.id);
      const line = make("tr", {}, make("td", { class: "text" }, opener, question.prompt ? make("div", { class: "prompt", dir: "auto" }, question.prompt) : null), ...here.columns.slice(1).map((column, i) => {
        const value = question.cells[i + 1], td = make("td", { class: column.kind === "text" ? "text" : "n" });
        if (column.meter && value !== null) {
          const bar = make("span");
          bar.style.width = `${100 * value}%`;
          td.append(make("span", { class: "meter", "aria-hidden": "true" }, bar));
        }
        td.append(column.meter ? make("span", { class: "said" }, said[column.kind](value)) : said[column.kind](value));
        return td;
      }));
      opener.addEventListener("click", () => {
        const open = opener.getAttribute("aria-expanded") === "true";
        opener.setAttribute("aria-expanded", String(!open));
        if (open) line.nextSibling.remove(); else line.after(detail(here, question, here.columns.length));
      });
      return line;
    };
    const reset = () => {
      const all = [...new Set(banks[state.bank].questions.flatMap((question) => question.groups))].sort();
      group.replaceChildren(make("option", { value: "" }, "all"), ...all.map((name) => make("option", { value: name }, name)));
      groupLabel.hidden = all.length === 0;
      Object.assign(state, { group: "", most: 25 });
      show();
    };
    search.addEventListener("input", () => { Object.assign(state, { text: search.value, most: 25 }); show(); });
    status.addEventListener("change", () => { Object.assign(state, { status: status.value, most: 25 }); show(); });
    group.addEventListener("change", () => { Object.assign(state, { group: group.value, most: 25 }); show(); });
    bank.addEventListener("change", () => { state.bank = bank.value; reset(); });
    more.addEventListener("click", () => { state.most += 50; show(); });
    take.addEventListener("click", () => save("questions.csv", "text/csv", csv(banks[state.bank].columns.map((column) => column.key), found().map((question) => question.cells))));
    reset();
  };
  for (const place of document.querySelectorAll("[data-explorer]")) explore(place, explorers[place.dataset.explorer]);

  // ----------------------------------------------------------------------------------------------- theme and contents
  const button = document.getElementById("theme"), themes = ["system", "light", "dark"];
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % themes.length];
    if (next === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  });
  for (const link of document.querySelectorAll(".jump a")) link.addEventListener("click", () => { link.closest("details").open = false; });
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && links.has(entry.target.id)) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -75% 0px" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));
  startCharts();
})();
