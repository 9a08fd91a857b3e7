// Plays a trace: lanes, arrows and queues at a position among the steps. The data is playback.py's.
"use strict";
(function () {
  const trace = JSON.parse(document.getElementById("trace").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const LANE = trace.ranks.length > 4 ? 100 : 132; // pixels of a lane
  const PLACE = 38; // pixels of a place
  const LEAD = 40; // pixels before the first step
  const AHEAD = 0.62; // part of the picture that is left of the playhead
  const RATE = 4; // places a second at speed 1
  const BAR = 18; // pixels: height of a call
  const LETTER = 6.4; // pixels of a label's letter
  const LINE = 14; // pixels of a label's height
  const BESIDE = [0, 1, 2, 3].flatMap((line) => [-9 - line * LINE, 18 + line * LINE]); // pixels from an arrow to its label
  const SHOWN = 3; // entries of a queue that fit a lane
  const steps = trace.steps;
  const end = steps.length ? steps[steps.length - 1].place : 0;
  const byId = (id) => document.getElementById(id);
  let position = 0; // places
  let step = 0; // the last one that has happened
  let listed = 0; // the step that the list has marked
  let playing = false;
  let before = 0; // when the last frame was, in ms

  function element(parent, tag, attributes, text) {
    const made = parent.namespaceURI === SVG || tag === "svg"
      ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  const x = (place) => LEAD + place * PLACE;
  const y = (lane) => lane * LANE + LANE / 2;
  const placeOf = (number) => (number === null ? end + 1 : steps[number].place);

  function timeText(nanoseconds) {
    if (nanoseconds < 1e7) return (nanoseconds / 1e3).toFixed(3) + " µs";
    return (nanoseconds / 1e6).toFixed(3) + " ms";
  }

  // labels: where they lie at last, in boxes by their places, and while they move

  const settled = new Map();
  const column = (at) => Math.floor(at / 300); // wider than any label

  function meets(one, other) {
    return Math.abs(one.x - other.x) < (one.width + other.width) / 2 && Math.abs(one.y - other.y) < LINE;
  }

  function near(box) {
    const found = [];
    for (let at = column(box.x) - 1; at <= column(box.x) + 1; at++) found.push(...(settled.get(at) || []));
    return found;
  }

  function boxAt(arrow, at, beside) {
    const { fromPoint: from, toPoint: to } = arrow;
    return { x: from.x + (to.x - from.x) * at, y: from.y + (to.y - from.y) * at + beside, width: arrow.width };
  }

  function settle(arrow) { // those of both ways lie apart
    const usual = arrow.from < arrow.to ? 0.42 : 0.58;
    arrow.box = null;
    for (const at of [usual, 1 - usual, 0.3, 0.7]) {
      for (const beside of BESIDE) {
        const box = { ...boxAt(arrow, at, beside), at, beside, arrow };
        if (arrow.box === null) arrow.box = box; // if there is room nowhere
        if (!near(box).some((other) => meets(box, other))) {
          arrow.box = box;
          settled.set(column(box.x), [...(settled.get(column(box.x)) || []), box]);
          return;
        }
      }
    }
  }

  function showLabels() {
    const moving = [];
    for (const arrow of trace.arrows) {
      if (arrow.shown === null || arrow.shown < 0) continue;
      let box = arrow.box;
      if (arrow.shown < box.at) { // goes with the dot
        const choices = [box.beside, ...BESIDE].map((beside) => boxAt(arrow, arrow.shown, beside));
        const free = (choice) => !moving.some((other) => meets(choice, other))
          && !near(choice).some((other) => other.arrow.shown >= other.at && meets(choice, other));
        box = choices.find(free) || choices[0];
        moving.push(box);
      } else if (arrow.rests) continue;
      arrow.rests = box === arrow.box;
      arrow.label.setAttribute("x", box.x);
      arrow.label.setAttribute("y", box.y - (arrow.from === arrow.to ? 30 * arrow.shown : 0));
    }
  }

  // what does not move

  function drawLanes() {
    const drawing = byId("drawing");
    drawing.setAttribute("height", trace.ranks.length * LANE);
    trace.ranks.forEach((rank, lane) => {
      const row = `--row: ${lane + 2}`; // on a narrow screen, below the picture
      const name = element(byId("names"), "div", { class: "name", "data-lane": lane, style: row });
      element(name, "b", {}, rank.head);
      rank.call = element(name, "div", { class: "call" });
      rank.where = element(name, "div", { class: "where" });
      rank.code = element(name, "code", {});
      element(byId("moving"), "line", { class: "life", x1: x(0) - LEAD, x2: x(end) + LEAD, y1: y(lane), y2: y(lane) });
      const pair = element(byId("queues"), "div", { class: "queue-pair", "data-lane": lane, style: row });
      rank.queues = {};
      for (const [queue, words] of trace.queues) {
        const side = element(pair, "div", { class: queue });
        const title = element(side, "h3", {}, words);
        rank.queues[queue] = { title, words, list: element(side, "ul", { "data-queue": queue, "data-lane": lane }) };
      }
    });
    trace.ranks.forEach((rank, lane) => {
      element(drawing, "text", { class: "lane-name", x: 6, y: lane * LANE + 16 }, rank.head);
    });
    const head = byId("playhead");
    head.setAttribute("y1", 0);
    head.setAttribute("y2", trace.ranks.length * LANE);
  }

  function drawCalls() {
    for (const call of trace.calls) {
      const group = element(byId("moving"), "g", {});
      const left = x(placeOf(call.start));
      call.group = group;
      call.bar = element(group, "rect", {
        class: "bar" + (call.error ? " failed" : ""), x: left, y: y(call.lane) - BAR / 2, height: BAR, rx: 3,
      });
      element(group, "text", { class: "bar-name", x: left + 2, y: y(call.lane) + BAR / 2 + 12 }, call.name);
      element(group, "title", {}, [call.name, call.of, call.communicator, call.line, call.error].filter(Boolean).join(" · "));
    }
  }

  function arrowEnds(arrow) {
    const from = { x: x(placeOf(arrow.start)), y: y(arrow.from) };
    const lost = arrow.end === null;
    const to = { x: lost ? from.x + PLACE : x(placeOf(arrow.end)), y: y(arrow.to) };
    if (lost) { // it goes half of the way: nobody has seen it arrive
      to.y = from.y + (to.y - from.y) / 2;
    } else if (to.x - from.x < 2) {
      to.x = from.x + 2;
    }
    return { from, to };
  }

  function drawArrows() {
    for (const arrow of trace.arrows) {
      const message = trace.messages[arrow.message];
      const hidden = message.internal ? " internal" : "";
      const { from, to } = arrowEnds(arrow);
      const group = element(byId("moving"), "g", { class: "message" + hidden, "data-arrow": arrow.name });
      const first = !message.labelled;
      message.labelled = true;
      const words = first ? message.label : arrow.name + (arrow.size ? " " + arrow.size : "");
      Object.assign(arrow, { group, line: element(group, "path", { class: "arrow " + arrow.kind + " " + message.family }) });
      arrow.tip = element(group, "path", { class: "tip " + message.family });
      arrow.cross = arrow.end === null
        ? element(group, "path", { class: "lost", d: `M${to.x - 5} ${to.y - 5}l10 10m-10 0l10 -10` }) : null;
      arrow.dot = element(group, "circle", { class: "dot " + message.family, r: 6 });
      arrow.label = element(group, "text", { class: "label " + message.family }, words);
      element(group, "title", {}, [arrow.name, arrow.size, message.protocol, message.tag, message.size].filter(Boolean).join(" · "));
      Object.assign(arrow, { fromPoint: from, toPoint: to, shown: null, rests: false, width: LETTER * words.length });
      settle(arrow);
    }
  }

  function drawLegend() {
    const list = byId("legend");
    const line = (name, text) => {
      const item = element(list, "li", {});
      const picture = element(item, "svg", { viewBox: "0 0 46 12", "aria-hidden": "true" });
      element(picture, "path", { class: "sample " + name, d: "M1 6H45" });
      element(item, "span", {}, text);
    };
    for (const family of trace.families) line(family.name, family.name + ": " + family.text);
    line("data", "of medium width: a fragment with data");
    line("control", "thin: a control message");
    line("rdma", "thick: a put or get");
    for (const sentence of trace.left_out) element(byId("left-out"), "li", {}, sentence);
    byId("missing").hidden = trace.left_out.length === 0;
  }

  function drawSteps() {
    steps.forEach((each, number) => {
      each.item = element(byId("steps"), "li", { tabindex: 0 }, trace.ranks[each.lane].head.replace(/ on .*/, "") + ": " + each.text);
      const go = () => goTo(number);
      each.item.addEventListener("click", go);
      each.item.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    });
  }

  // what moves

  function showArrow(arrow) {
    const begun = placeOf(arrow.start);
    const over = arrow.end === null ? begun + 1 : placeOf(arrow.end);
    const part = position < begun ? -1 : position >= over ? 1 : (position - begun) / (over - begun);
    if (part === arrow.shown) return;
    arrow.shown = part;
    arrow.group.style.visibility = part < 0 ? "hidden" : "visible";
    if (part < 0) return;
    const { fromPoint: from, toPoint: to } = arrow;
    const here = { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
    const rise = arrow.from === arrow.to ? 60 * part : 0; // to oneself: a bow
    arrow.line.setAttribute("d", rise
      ? `M${from.x} ${from.y}C${from.x} ${from.y - rise} ${here.x} ${here.y - rise} ${here.x} ${here.y}`
      : `M${from.x} ${from.y}L${here.x} ${here.y}`);
    const moving = part < 1;
    arrow.group.dataset.moving = moving ? "yes" : "no";
    arrow.dot.setAttribute("visibility", moving ? "inherit" : "hidden");
    arrow.dot.setAttribute("cx", here.x);
    arrow.dot.setAttribute("cy", here.y);
    if (moving) arrow.rests = false;
    arrow.tip.setAttribute("d", !moving && arrow.end !== null ? tip(from, to, arrow.from === arrow.to) : "");
    if (arrow.cross) arrow.cross.setAttribute("visibility", moving ? "hidden" : "inherit");
  }

  function tip(from, to, down) {
    const angle = down ? Math.PI / 2 : Math.atan2(to.y - from.y, to.x - from.x);
    const corner = (turn) => `${to.x - 10 * Math.cos(angle + turn)} ${to.y - 10 * Math.sin(angle + turn)}`;
    return `M${to.x} ${to.y}L${corner(0.4)}L${corner(-0.4)}Z`;
  }

  function showCall(call) {
    const begun = placeOf(call.start);
    call.group.style.visibility = position < begun ? "hidden" : "visible";
    const until = Math.min(position, call.end === null ? end : placeOf(call.end));
    call.bar.setAttribute("width", Math.max(3, (until - begun) * PLACE));
  }

  function showRanks() {
    const now = trace.ranks.map(() => null);
    for (const call of trace.calls) {
      if (call.start <= step && (call.end === null || call.end > step)) now[call.lane] = call;
    }
    trace.ranks.forEach((rank, lane) => {
      const call = now[lane];
      rank.call.textContent = call ? "in " + call.name + (call.of ? ": " + call.of : "") : trace.outside;
      rank.call.className = call ? "call" : "quiet";
      rank.where.textContent = call ? call.line : "";
      rank.code.textContent = call ? call.text : "";
      rank.code.hidden = !(call && call.text);
    });
  }

  function showQueues() {
    const names = trace.queues.map(([queue]) => queue);
    const found = trace.ranks.map(() => Object.fromEntries(names.map((queue) => [queue, []])));
    const all = byId("internal").checked;
    for (const each of trace.waiting) {
      const here = each.start <= step && (each.end === null || each.end > step);
      if (here && (all || !each.internal)) found[each.lane][each.queue].push(each);
    }
    trace.ranks.forEach((rank, lane) => {
      for (const queue of names) {
        const { title, words, list } = rank.queues[queue];
        const entries = found[lane][queue];
        title.textContent = entries.length ? words + " (" + entries.length + ")" : words;
        list.replaceChildren();
        for (const each of entries.slice(0, SHOWN)) {
          element(list, "li", { class: each.family }, (each.family ? each.family + " " : "") + each.text);
        }
        if (entries.length > SHOWN) element(list, "li", { class: "more" }, "and " + (entries.length - SHOWN) + " more");
        if (!entries.length) element(list, "li", { class: "quiet none" }, "none");
      }
    });
  }

  function showStep() {
    document.body.dataset.step = step;
    byId("scrub").value = step;
    const each = steps[step];
    byId("now").textContent = each ? trace.ranks[each.lane].head + ": " + each.text : "nothing happened";
    byId("clock").textContent = each ? `step ${step + 1} of ${steps.length}, ${timeText(each.time)}` : "";
    for (let number = Math.min(step, listed); number <= Math.max(step, listed) && each; number++) {
      steps[number].item.className = number === step ? "current" : number < step ? "done" : "";
    }
    listed = step;
    if (each) {
      const list = byId("steps");
      list.scrollTop = each.item.offsetTop - list.offsetTop - list.clientHeight / 2;
    }
    showRanks();
    showQueues();
  }

  function stepAt(place) {
    let low = 0, high = steps.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (steps[middle].place <= place + 1e-9) low = middle; else high = middle - 1;
    }
    return low;
  }

  function show() {
    const number = stepAt(position);
    const moved = number !== step || document.body.dataset.step === undefined;
    step = number;
    if (moved) showStep();
    trace.arrows.forEach(showArrow);
    showLabels();
    trace.calls.forEach(showCall);
    const width = byId("picture").clientWidth;
    const most = Math.max(0, x(end) + LEAD - width);
    const offset = Math.min(Math.max(0, x(position) - width * AHEAD), most);
    byId("moving").setAttribute("transform", `translate(${-offset} 0)`);
    byId("playhead").setAttribute("x1", x(position) - offset);
    byId("playhead").setAttribute("x2", x(position) - offset);
  }

  // what people do

  function goTo(number) {
    setPlaying(false);
    position = steps.length ? steps[Math.min(Math.max(number, 0), steps.length - 1)].place : 0;
    show();
  }

  function setPlaying(wanted) {
    playing = wanted && steps.length > 0;
    if (playing && position >= end) position = 0;
    byId("play").textContent = playing ? "pause" : "▶ play";
    byId("play").setAttribute("aria-pressed", playing);
    if (playing) {
      before = performance.now();
      requestAnimationFrame(frame);
    }
  }

  function frame(now) {
    if (!playing) return;
    position = Math.min(end, position + (Math.max(0, now - before) / 1000) * RATE * Number(byId("speed").value));
    before = now;
    show();
    if (position >= end) setPlaying(false); else requestAnimationFrame(frame);
  }

  function changeSpeed(by) {
    const speed = byId("speed");
    speed.selectedIndex = Math.min(Math.max(speed.selectedIndex + by, 0), speed.options.length - 1);
  }

  const KEYS = {
    " ": () => setPlaying(!playing),
    ArrowRight: () => goTo(step + 1),
    ArrowLeft: () => goTo(step - 1),
    Home: () => goTo(0),
    End: () => goTo(steps.length - 1),
    "+": () => changeSpeed(1),
    "-": () => changeSpeed(-1),
  };

  document.addEventListener("keydown", (event) => {
    const tag = event.target.tagName;
    const own = tag === "SELECT" || event.target.type === "checkbox" || (tag === "BUTTON" && event.key === " ");
    if (own || event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  byId("first").addEventListener("click", () => goTo(0));
  byId("back").addEventListener("click", () => goTo(step - 1));
  byId("play").addEventListener("click", () => setPlaying(!playing));
  byId("forward").addEventListener("click", () => goTo(step + 1));
  byId("last").addEventListener("click", () => goTo(steps.length - 1));
  byId("scrub").addEventListener("input", (event) => goTo(Number(event.target.value)));
  byId("internal").addEventListener("change", (event) => {
    document.body.classList.toggle("no-internal", !event.target.checked);
    showQueues();
  });
  window.addEventListener("resize", show);

  byId("stage").style.setProperty("--lane", LANE + "px");
  byId("title").textContent = trace.title;
  byId("facts").textContent = trace.facts.join(" · ");
  byId("scrub").max = Math.max(0, steps.length - 1);
  drawLanes();
  drawCalls();
  drawArrows();
  drawLegend();
  drawSteps();
  show();
})();
