"use strict";
// Everything from the session reaches the document as text (textContent), never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const outline = JSON.parse(byId("outline").textContent);
  const [TOOL_ONLY, FAILED, QUIET] = [1, 2, 4];
  const nodes = outline.nodes.map(([at, parent, kind, flags, id, line, label], index) =>
    ({ index, at, parent, kind, flags, id, line, label, newest: index }));
  const elements = new Map();
  for (const element of document.querySelectorAll("[data-n]")) elements.set(Number(element.dataset.n), element);
  const nodeAt = new Map(nodes.map((node) => [node.at, node]));
  const nodeById = new Map();
  for (const node of [...nodes].sort((a, b) => a.at - b.at)) nodeById.set(node.id, node);

  // A node comes after its parent, so one pass from the end finds the newest leaf below each.
  const isLeaf = nodes.map(() => true);
  for (const node of nodes) if (node.parent >= 0) isLeaf[node.parent] = false;
  for (const node of nodes) if (!isLeaf[node.index]) node.newest = -1;
  for (let index = nodes.length - 1; index > 0; index--) {
    const node = nodes[index], parent = nodes[node.parent];
    if (parent && (parent.newest < 0 || nodes[parent.newest].at < nodes[node.newest].at)) parent.newest = node.newest;
  }

  const state = { leaf: outline.leaf, path: new Set(), here: -1, words: [], aim: null };
  const store = (key, value) => { try { localStorage.setItem(key, value); } catch { /* not kept */ } };
  const stored = (key) => { try { return localStorage.getItem(key); } catch { return null; } };

  // ---- the opened path ----------------------------------------------------------------------------------------
  function open(leaf, here = -1) {
    state.leaf = leaf;
    state.here = here;
    state.path = new Set();
    for (let index = leaf; index >= 0; index = nodes[index].parent) state.path.add(index);
    for (const node of nodes) {
      const element = elements.get(node.at);
      if (element) element.hidden = !state.path.has(node.index);
    }
    byId("nothing").hidden = leaf >= 0 || nodes.length === 0;
    for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
    drawRows();
    const target = here >= 0 && elements.get(nodes[here].at);
    if (!target) return;
    target.classList.add("target");
    reveal(target, "start");
  }

  // Cards get their height only when they come near, so the place moves while the browser goes there: aim again.
  function reveal(element, block, frames = 12) {
    if (frames === 12) state.aim = element;
    if (state.aim !== element || element.hidden) return;
    element.scrollIntoView({ block });
    if (frames > 0) requestAnimationFrame(() => reveal(element, block, frames - 1));
  }

  // ---- the tree -----------------------------------------------------------------------------------------------
  const SETTINGS = new Set(["model", "level", "label", "name", "summary", "other"]);
  function passes(node, filter) {
    if (filter === "all") return true;
    if (node.flags & TOOL_ONLY) return filter === "labelled" && Boolean(node.label);
    if (filter === "user") return node.kind === "user";
    if (filter === "labelled") return Boolean(node.label);
    if (SETTINGS.has(node.kind) || node.flags & QUIET) return false;
    return !(filter === "no-tools" && node.kind === "tool");
  }

  const haystacks = new Map();
  function haystack(node) {
    if (!haystacks.has(node.index)) {
      const element = elements.get(node.at);
      let text = element ? element.textContent : "";
      if (element) for (const inner of element.querySelectorAll("[data-n]")) text = text.replace(inner.textContent, () => " ");
      haystacks.set(node.index, `${node.kind} ${node.label} ${node.line} ${text}`.toLowerCase());
    }
    return haystacks.get(node.index);
  }
  const found = (node) => state.words.every((word) => haystack(node).includes(word));

  // The lines that join a node to its parent. Only where a path forks does it move to the right.
  function* withBranches(kept) {
    const isKept = new Set(kept), anchor = [], count = new Map(), last = new Map(), gutter = new Map([[-1, ""]]);
    for (const node of nodes) {
      const above = node.parent < 0 ? -1 : anchor[node.parent];
      anchor.push(isKept.has(node.index) ? node.index : above);
      if (!isKept.has(node.index)) continue;
      node.above = above;
      count.set(above, (count.get(above) || 0) + 1);
      last.set(above, node.index);
    }
    for (const index of kept) {
      const above = nodes[index].above, before = gutter.get(above), isLast = last.get(above) === index;
      const forks = count.get(above) > 1;
      const after = forks ? before + (isLast ? "   " : "│  ") : before;
      gutter.set(index, after.length > 45 ? "…" + after.slice(-42) : after);
      yield [nodes[index], forks ? before + (isLast ? "└─ " : "├─ ") : before];
    }
  }

  function span(className, text) {
    const made = document.createElement("span");
    made.className = className;
    made.textContent = text;
    return made;
  }

  function row(node, branch) {
    const made = document.createElement("button");
    made.type = "button";
    made.dataset.index = node.index;
    made.title = node.line;
    if (state.path.has(node.index)) made.classList.add("on");
    if (node.index === (state.here >= 0 ? state.here : state.leaf)) {
      made.classList.add("here");
      made.setAttribute("aria-current", "true");
    }
    made.append(span("branch", branch), span(node.flags & FAILED ? "k-bad" : `k-${node.kind}`, node.kind + " "));
    if (node.label) made.append(span("tag", node.label), " ");
    made.append(node.line);
    return made;
  }

  function drawRows() {
    const filter = byId("filter").value;
    document.body.dataset.filter = filter;
    const kept = nodes.filter((node) => (passes(node, filter) && found(node)) || (node.index === state.leaf && !state.words.length));
    const drawn = document.createDocumentFragment();
    for (const [node, branch] of withBranches(kept.map((node) => node.index))) drawn.append(row(node, branch));
    byId("rows").replaceChildren(drawn);
    byId("count").textContent = `${kept.length} of ${nodes.length} entries`;
  }

  byId("rows").addEventListener("click", (event) => {
    const clicked = event.target.closest("button");
    if (!clicked) return;
    const node = nodes[Number(clicked.dataset.index)];
    document.body.classList.remove("menu");
    open(node.newest, node.index);
  });
  byId("filter").addEventListener("change", drawRows);
  byId("search").addEventListener("input", (event) => {
    state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    drawRows();
  });

  function reset() {
    byId("search").value = "";
    state.words = [];
    document.body.classList.remove("menu");
    open(outline.leaf);
    const end = outline.leaf >= 0 && elements.get(nodes[outline.leaf].at);
    if (end) reveal(end, "end");
  }

  // ---- folding, keys ------------------------------------------------------------------------------------------
  function toggle(selector) {
    const all = [...document.querySelectorAll(selector)];
    const opening = !all.some((details) => details.open);
    for (const details of all) details.open = opening;
  }
  byId("think").addEventListener("click", () => toggle("details.thinking"));
  byId("fold").addEventListener("click", () => toggle("details.output"));
  byId("menu").addEventListener("click", () => document.body.classList.toggle("menu"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("viewer").open) return;
    if (event.key === "Escape") return reset();
    if (event.target.matches("input, select, textarea")) return;
    if (event.key.toLowerCase() === "t") toggle("details.thinking");
    if (event.key.toLowerCase() === "o") toggle("details.output");
  });

  // ---- colours, width -----------------------------------------------------------------------------------------
  const THEMES = ["auto", "dark", "light"];
  function dress(theme) {
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = `Colours: ${theme}`;
  }
  const chosen = stored("atomic-export-theme");
  dress(THEMES.includes(chosen) ? chosen : document.documentElement.dataset.theme);
  byId("theme").addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    dress(next);
    store("atomic-export-theme", next);
  });

  function widen(width) {
    const fitting = Math.min(720, Math.max(240, Math.round(width) || 400));
    document.documentElement.style.setProperty("--width", `${fitting}px`);
    store("atomic-export-width", String(fitting));
  }
  widen(Number(stored("atomic-export-width")) || 400);
  const grip = byId("grip");
  grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
  grip.addEventListener("pointermove", (event) => { if (grip.hasPointerCapture(event.pointerId)) widen(event.clientX); });
  grip.addEventListener("dblclick", () => widen(400));

  // ---- images, links, download --------------------------------------------------------------------------------
  const viewer = byId("viewer");
  byId("cards").addEventListener("click", (event) => {
    const image = event.target.closest(".zoom");
    if (image) {
      viewer.firstElementChild.src = image.firstElementChild.src;
      viewer.showModal();
    }
    const link = event.target.closest(".link");
    if (link) copyLink(nodeAt.get(Number(link.closest("[data-n]").dataset.n)), link);
  });
  viewer.addEventListener("click", () => viewer.close());

  async function copyLink(node, button) {
    const leaf = nodes[state.leaf] || node;
    const query = new URLSearchParams({ leafId: leaf.id, targetId: node.id });
    const address = `${location.href.split(/[?#]/)[0]}?${query}`;
    try {
      await navigator.clipboard.writeText(address);
      button.textContent = "✓";
    } catch {
      prompt("Link to this entry", address);
    }
  }

  byId("download").addEventListener("click", async () => {
    const packed = Uint8Array.from(atob(byId("archive").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await new Response(stream).blob());
    link.download = byId("download").dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });

  // ---- start: the entry that the address names, else the end of the session -----------------------------------------
  const asked = new URLSearchParams(location.search);
  const leaf = nodeById.get(asked.get("leafId")), target = nodeById.get(asked.get("targetId"));
  if (leaf || target) open(leaf ? leaf.index : target.newest, target ? target.index : -1);
  else open(outline.leaf);
})();
