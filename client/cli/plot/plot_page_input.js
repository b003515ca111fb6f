// What the user does: controls, keys, mouse and fingers. Adds methods to Page and starts it.

const FURTHER_IN = 1 / 1.4; // one press of +
const PER_WHEEL = 0.0016; // natural logarithm of the zoom for one unit of the wheel
const CLICK = 4; // pixels that the pointer may move in a click
const BOX = 24; // pixels: a selection of less height is a range of wavelengths only
const TAPS = 350; // milliseconds between two taps that belong together

Object.assign(Page.prototype, {
  addControls() {
    const { data } = this, first = data.fibres[0];
    $("file").textContent = data.about.file;
    document.title = data.about.file + " – spectra";
    $("summary").textContent = data.fibres.length + " spectra of " + data.bins + " bins, "
      + data.arms.map(([name, from, end]) => (name ? name + " " : "") + data.wave[from].toFixed(1) + "–"
        + data.wave[end - 1].toFixed(1) + " Å").join(", ");
    $("rows").textContent = data.rowName;
    for (const [id, which] of [["previous", "Previous "], ["next", "Next "]]) {
      const button = $(id), name = which + data.rowName.toLowerCase();
      button.title = button.title.replace(/^\w+ \w+/, name);
      button.setAttribute("aria-label", name);
    }
    for (const [name, value] of data.about.facts) this.addFact(name, value);
    const kinds = [...new Set(data.fibres.map((fibre) => fibre.kind))].filter((kind) => kind).sort();
    for (const kind of ["", ...kinds]) $("kind").append(new Option(kind || "all", kind));
    $("kinds").hidden = kinds.length < 2;
    $("kinds").style.display = kinds.length < 2 ? "none" : "";
    $("number").value = first.number;
    this.list("");
    for (const layer of LAYERS) this.addLayer(...layer);
    $("controls").addEventListener("submit", (event) => event.preventDefault());
    $("previous").addEventListener("click", () => this.turn(-1));
    $("next").addEventListener("click", () => this.turn(1));
    $("whole").addEventListener("click", () => this.whole());
    $("list").addEventListener("change", () => this.choose(Number($("list").value)));
    $("kind").addEventListener("change", () => {
      this.list($("kind").value);
      this.choose(this.listed.includes(this.fibre) ? this.fibre : this.listed[0]);
    });
    $("number").addEventListener("change", () => this.chooseNumber(Number($("number").value)));
    $("number").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.chooseNumber(Number($("number").value));
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      event.preventDefault();
      this.turn(event.key === "ArrowUp" ? 1 : -1);
    });
  },

  addFact(name, value) {
    const term = document.createElement("dt"), meaning = document.createElement("dd");
    term.textContent = name;
    meaning.textContent = value;
    $("facts").append(term, meaning);
  },

  addLayer(id, text, colour, has) {
    this.shown[id] = has(this.data);
    if (!this.shown[id]) return;
    const label = document.createElement("label"), box = document.createElement("input");
    const swatch = document.createElement("span");
    box.type = "checkbox";
    box.checked = true;
    box.id = "show-" + id;
    swatch.className = "swatch";
    swatch.style.background = "var(" + colour + ")";
    box.addEventListener("change", () => {
      this.shown[id] = box.checked;
      this.redraw();
    });
    label.append(box, swatch, text);
    $("layers").append(label);
  },

  // Lists the fibres of a kind; "": all.
  list(kind) {
    const { fibres } = this.data;
    this.listed = fibres.map((_, fibre) => fibre).filter((fibre) => !kind || fibres[fibre].kind === kind);
    $("kind").value = kind;
    $("list").replaceChildren(...this.listed.map((fibre) => new Option(this.data.label(fibre), fibre)));
  },

  chooseNumber(number) {
    const fibre = this.data.fibres.findIndex((one) => one.number === number);
    if (fibre >= 0) {
      this.choose(fibre);
      return;
    }
    const numbers = this.data.fibres.map((one) => one.number);
    $("number").value = this.data.fibres[this.fibre].number;
    $("problem").textContent = "This page has " + this.data.rowName.toLowerCase() + "s " + Math.min(...numbers) + " to " + Math.max(...numbers) + ", not "
      + (Number.isFinite(number) ? number : "that") + ".";
  },

  addKeys() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT)$/.test(event.target.tagName)) return;
      const middle = this.bin !== null ? this.data.wave[this.bin] : 0.5 * (this.waves[0] + this.waves[1]);
      const bin = this.bin !== null ? this.bin : this.data.binAt(middle);
      const by = event.shiftKey ? TURN : 1;
      const to = (place) => this.point(Math.min(Math.max(place, 0), this.data.bins - 1), true);
      const actions = {
        ArrowLeft: () => to(bin - by), ArrowRight: () => to(bin + by),
        Home: () => to(0), End: () => to(this.data.bins - 1),
        ArrowUp: () => this.turn(1), ArrowDown: () => this.turn(-1),
        "+": () => this.zoom(FURTHER_IN, middle), "=": () => this.zoom(FURTHER_IN, middle),
        "-": () => this.zoom(1 / FURTHER_IN, middle), "0": () => this.whole(), Escape: () => this.whole(),
      };
      if (!actions[event.key]) return;
      event.preventDefault();
      actions[event.key]();
    });
  },

  addPointer() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => {
      this.pointers.delete(event.pointerId);
      this.gesture = null;
      this.redraw();
    });
    canvas.addEventListener("dblclick", () => this.whole());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  },

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  },

  panelAt({ y }) {
    const { axes } = this;
    return axes.find(({ box }) => y < box.top + box.height + 0.5 * MARGIN.between) || axes[axes.length - 1];
  },

  readAt(at) {
    this.point(this.data.binAt(this.axes[0].wave(at.x)), false);
  },

  isBox({ start, at }) {
    return Math.abs(at.y - start.y) >= BOX;
  },

  press(event) {
    if (!this.axes) return;
    const at = this.place(event);
    try {
      this.canvas.setPointerCapture(event.pointerId);
    } catch (gone) {
      return; // the finger left before the page heard of it
    }
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size === 2) {
      const waves = [...this.pointers.values()].map(({ x }) => this.axes[0].wave(x));
      this.gesture = { kind: "pinch", waves };
      return;
    }
    const moves = event.pointerType !== "mouse" || event.shiftKey || event.button === 1;
    this.gesture = { kind: moves ? "move" : "select", start: at, at, from: this.waves, axes: this.panelAt(at) };
  },

  move(event) {
    if (!this.axes) return;
    const at = this.place(event), { gesture } = this;
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, at);
    if (!gesture) {
      if (event.pointerType === "mouse") this.readAt(at);
      return;
    }
    if (gesture.kind === "pinch") {
      this.pinch(gesture);
    } else if (gesture.kind === "select") {
      gesture.at = at;
      this.readAt(at);
    } else {
      gesture.at = at;
      const perPixel = (gesture.from[1] - gesture.from[0]) / this.axes[0].box.width;
      const by = (gesture.start.x - at.x) * perPixel;
      this.show(gesture.from[0] + by, gesture.from[1] + by);
    }
  },

  // Keeps the wavelengths that two fingers took hold of below the fingers.
  pinch({ waves }) {
    const [a, b] = [...this.pointers.values()].map(({ x }) => x);
    if (Math.abs(a - b) < BOX || waves[0] === waves[1]) return;
    const perPixel = (waves[1] - waves[0]) / (b - a);
    if (!(perPixel > 0)) return;
    const { box } = this.axes[0];
    const low = waves[0] - (a - box.left) * perPixel;
    this.show(low, low + box.width * perPixel);
  },

  release(event) {
    const { gesture } = this;
    this.pointers.delete(event.pointerId);
    this.gesture = null;
    if (!gesture || gesture.kind === "pinch") return;
    const at = this.place(event), moved = Math.hypot(at.x - gesture.start.x, at.y - gesture.start.y);
    if (moved < CLICK) {
      this.readAt(at);
      if (event.pointerType !== "mouse" && event.timeStamp - this.lastTap < TAPS) this.whole();
      this.lastTap = event.timeStamp;
    } else if (gesture.kind === "select") {
      this.select(gesture, at);
    }
    this.redraw();
  },

  select({ start, axes }, at) {
    const waves = [axes.wave(start.x), axes.wave(at.x)].sort((a, b) => a - b);
    const values = [axes.value(start.y), axes.value(at.y)].sort((a, b) => a - b);
    if (this.isBox({ start, at })) this.values[axes.name] = values;
    if (Math.abs(at.x - start.x) >= CLICK) this.show(...waves);
  },

  wheel(event) {
    event.preventDefault();
    if (!this.axes) return;
    const at = this.place(event), axes = this.panelAt(at);
    const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1; // from lines or pages to pixels
    const across = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan(((across * unit) / axes.box.width) * (this.waves[1] - this.waves[0]));
      return;
    }
    const factor = Math.exp(event.deltaY * unit * PER_WHEEL);
    if (at.x < axes.box.left) {
      const about = axes.value(at.y);
      this.values[axes.name] = axes.values.map((value) => about + (value - about) * factor);
      this.redraw();
    } else {
      this.zoom(factor, axes.wave(at.x));
    }
  },
});

window.page = new Page(new FrameData());
